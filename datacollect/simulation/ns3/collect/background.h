// Background traffic: flows of others, for as long as the simulation lasts.
#ifndef DATACOLLECT_COLLECT_BACKGROUND_H
#define DATACOLLECT_COLLECT_BACKGROUND_H

#include "collect/building.h"
#include "collect/pipes.h"
#include "collect/scenario.h"

#include "ns3/random-variable-stream.h"
#include "ns3/udp-socket-factory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace collect
{

using namespace ns3;

struct Flow : Pipe
{
    Flow(const Traffic& traffic, uint32_t segment) : is(traffic), segment(segment) {}

    void Accepted(Ptr<Socket> socket) override { socket->SetRecvCallback(HearReadable(this)); }

    void Opened() override { Sendable(); }

    void Broken() override { broken = true; }

    void Readable(Ptr<Socket> socket) override
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                break;
            }
            received += packet->GetSize();
        }
    }

    void Sendable() override
    {
        while (uint32_t n = std::min(out->GetTxAvailable() / segment, 64u))
        {
            if (out->Send(Create<Packet>(n * segment)) <= 0)
            {
                break;
            }
        }
    }

    void Left(uint32_t) override {}

    void Woken(int why) override
    {
        if (why == START && !is.udp)
        {
            Connect();
        }
        else if (why == START)
        {
            Switch(true);
        }
        else if (Simulator::Now() >= onUntil)
        {
            Switch(false);
        }
        else
        {
            out->Send(Create<Packet>(segment));
            Wake(Seconds(segment / is.rate), int(DATAGRAM));
        }
    }

    // Go on to the next time on. The first state is drawn as if the source had run for ever.
    void Switch(bool first)
    {
        double off = is.off_s > 0 ? random->GetValue(is.off_s, 0) : 0;
        double on = is.off_s > 0 ? random->GetValue(is.on_s, 0) : 1e9;
        if (first && is.off_s > 0)
        {
            // An exponential time of mean 1 is below -log(1 - p) with probability
            // p = on / (on + off).
            double drawn = random->GetValue(1, 0);
            off = drawn < -std::log(is.off_s / (is.on_s + is.off_s)) ? 0 : off;
        }
        onUntil = Simulator::Now() + Seconds(off + on);
        Wake(Seconds(off), int(DATAGRAM));
    }

    Traffic is;
    uint32_t segment;
    Ptr<ExponentialRandomVariable> random;
    Time onUntil;
    uint64_t received = 0;
    bool broken = false;
};

class Background
{
  public:
    Background(const Scenario& scenario, Network& network)
    {
        for (const Traffic& traffic : scenario.background)
        {
            flows.push_back(std::make_unique<Flow>(traffic, scenario.segment));
            Start(flows.back().get(), int64_t(flows.size() - 1), network);
        }
    }

    std::vector<std::unique_ptr<Flow>> flows;

  private:
    void Start(Flow* f, int64_t number, Network& network)
    {
        f->random = CreateObject<ExponentialRandomVariable>();
        f->random->SetStream(number);
        f->target = network.NextAddress(f->is.to);
        if (f->is.udp)
        {
            f->in = Socket::CreateSocket(network.At(f->is.to), UdpSocketFactory::GetTypeId());
            f->in->Bind(InetSocketAddress(Ipv4Address::GetAny(), f->target.GetPort()));
            f->in->SetRecvCallback(HearReadable(f));
            f->out = Socket::CreateSocket(network.At(f->is.from), UdpSocketFactory::GetTypeId());
            f->out->Bind();
            f->Connect();
        }
        else
        {
            f->Listen(network.At(f->is.from), network.At(f->is.to));
        }
        f->Wake(Seconds(f->is.start_s), int(START));
    }
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_BACKGROUND_H
