// The network, built of a scenario: nodes with routes, and wires with queues that count.
#ifndef DATACOLLECT_COLLECT_BUILDING_H
#define DATACOLLECT_COLLECT_BUILDING_H

#include "collect/forwarding.h"
#include "collect/routing.h"
#include "collect/scenario.h"

#include "ns3/drop-tail-queue.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/mac48-address.h"
#include "ns3/node.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace collect
{

using namespace ns3;

class Network
{
  public:
    // Takes the scenario's tables of routes.
    explicit Network(Scenario& scenario)
        : m_wires(scenario.wires),
          m_routeOfWire(scenario.wires.size()),
          m_counters(scenario.wires.size()),
          m_devices(scenario.wires.size()),
          m_forwarders(scenario.nNodes),
          m_port(scenario.nNodes, 10000)
    {
        m_nodes.reserve(scenario.nNodes);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.SetRoutingHelper(TableRoutingHelper());
        for (uint32_t n = 0; n < scenario.nNodes; ++n)
        {
            m_nodes.push_back(CreateObject<Node>());
            stack.Install(m_nodes[n]);
            m_forwarders[n].ipv4 = m_nodes[n]->GetObject<Ipv4L3Protocol>();
            m_forwarders[n].routing =
                DynamicCast<TableRouting>(m_forwarders[n].ipv4->GetRoutingProtocol());
        }
        double fastest = 1;
        for (size_t w = 0; w < m_wires.size(); ++w)
        {
            shortestQueue = std::min(shortestQueue, m_wires[w].queuePackets);
            fastest = std::max(fastest, m_wires[w].rate);
            if (m_wires[w].back < 0 || m_wires[w].back > int64_t(w))
            {
                Cable(w); // the first of two opposite wires builds it
            }
        }
        for (const RateChange& change : scenario.changes)
        {
            fastest = std::max(fastest, change.rate);
            ChangeRate(scenario.zero, change);
        }
        wrap_s = 2e9 / fastest;
        for (uint32_t n = 0; n < scenario.nNodes; ++n)
        {
            Route(n, std::move(scenario.wireTo[n]));
        }
    }

    Ptr<Node> At(uint32_t node) const { return m_nodes[node]; }

    // A new place to listen on a node.
    InetSocketAddress NextAddress(uint32_t node)
    {
        // Below 49152, from where on ns-3 numbers the other ends.
        m_port[node] = m_port[node] >= 49000 ? 10000 : m_port[node] + 1;
        return InetSocketAddress(AddressOf(node), m_port[node]);
    }

    // What has left a wire's queue, and what was dropped before it, since time 0.
    uint64_t SentBytes(size_t w) const
    {
        return m_counters[w].bytes - m_counters[w].queue->GetNBytes();
    }

    uint64_t DroppedPackets(size_t w) const
    {
        return m_counters[w].queue->GetTotalDroppedPackets();
    }

    // To be called before `wrap_s` have passed since the last time.
    void Count()
    {
        for (Counter& c : m_counters)
        {
            uint32_t now = c.queue->GetTotalReceivedBytes();
            c.bytes += uint32_t(now - c.lastBytes);
            c.lastBytes = now;
        }
    }

    uint32_t shortestQueue = UINT32_MAX; // packets
    double wrap_s = 1;                   // within which no wire fills a 32-bit counter

  private:
    struct Counter
    {
        Ptr<DropTailQueue<Packet>> queue;
        uint64_t bytes = 0; // queue's own counters have 32 bits
        uint32_t lastBytes = 0;
    };

    // Two opposite wires share a channel, each with its own rate and queue. No traffic-control
    // layer gets a queue of its own: a drop-tail router has one.
    void Cable(size_t w)
    {
        Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
        channel->SetAttribute("Delay", TimeValue(Seconds(m_wires[w].delay_s)));
        End(channel, m_wires[w].tail, int64_t(w));
        End(channel, m_wires[w].head, m_wires[w].back);
    }

    // What is on the wire then still goes at the rate of before.
    void ChangeRate(Time zero, const RateChange& change)
    {
        Simulator::Schedule(zero + Seconds(change.at_s),
                            &PointToPointNetDevice::SetDataRate,
                            m_devices[change.wire],
                            InBits(change.rate));
    }

    static DataRate InBits(double rate) { return DataRate(uint64_t(std::llround(rate * 8))); }

    void End(Ptr<PointToPointChannel> channel, uint32_t node, int64_t w)
    {
        Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
        device->SetAddress(Mac48Address::Allocate());
        Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
        uint32_t packets = w < 0 ? 1 : m_wires[w].queuePackets;
        queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, packets));
        device->SetQueue(queue);
        m_nodes[node]->AddDevice(device);
        device->Attach(channel);
        Ptr<Ipv4> ipv4 = m_nodes[node]->GetObject<Ipv4>();
        uint32_t interface = ipv4->AddInterface(device);
        ipv4->SetUp(interface);
        device->SetReceiveCallback(MakeCallback(&Forwarder::Receive, &m_forwarders[node]));
        if (w < 0)
        {
            return;
        }
        device->SetDataRate(InBits(m_wires[w].rate));
        m_counters[w].queue = queue;
        m_devices[w] = device;
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetSource(AddressOf(node));
        route->SetOutputDevice(device);
        route->SetGateway(AddressOf(m_wires[w].head));
        m_routeOfWire[w] = route;
    }

    void Route(uint32_t node, std::vector<uint32_t> wireTo)
    {
        Ptr<Ipv4> ipv4 = m_nodes[node]->GetObject<Ipv4>();
        if (ipv4->GetNInterfaces() > 1)
        {
            ipv4->AddAddress(1, Ipv4InterfaceAddress(AddressOf(node), Ipv4Mask::GetOnes()));
        }
        TableRouting& routing = *m_forwarders[node].routing;
        routing.node = node;
        routing.routeOfWire = &m_routeOfWire;
        routing.wireTo = std::move(wireTo);
    }

    const std::vector<Wire>& m_wires;
    std::vector<Ptr<Node>> m_nodes;
    std::vector<Ptr<Ipv4Route>> m_routeOfWire;
    std::vector<Counter> m_counters; // by wire
    std::vector<Ptr<PointToPointNetDevice>> m_devices; // by wire
    std::vector<Forwarder> m_forwarders; // by node, never moved: devices call them
    std::vector<uint16_t> m_port;    // by node, the last one used
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_BUILDING_H
