// A source of constant rate over one connection, of which one packet is lost; `evlbi.py` drives it,
// and compiles it after the packet engine's headers.
#ifndef DATACOLLECT_EVLBI_H
#define DATACOLLECT_EVLBI_H

#include "ns3/error-model.h"
#include "ns3/pointer.h"

namespace evlbi
{

using namespace ns3;

// Loses the first packet with data after an instant, and no other.
class LoseOne : public ErrorModel
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("evlbi::LoseOne").SetParent<ErrorModel>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override { return GetTypeId(); }

    Time after;
    double lost_s = -1; // not yet

  private:
    bool DoCorrupt(Ptr<Packet> packet) override
    {
        if (lost_s >= 0 || Simulator::Now() < after || packet->GetSize() < 1000)
        {
            return false;
        }
        lost_s = Simulator::Now().GetSeconds();
        return true;
    }

    void DoReset() override { lost_s = -1; }
};

// What TCP shows to nobody.
class Peek : public TcpSocketBase
{
  public:
    static uint32_t Window(Ptr<Socket> socket)
    {
        TcpSocketBase* tcp = PeekPointer(DynamicCast<TcpSocketBase>(socket));
        return (tcp->*(&Peek::m_tcb))->m_cWnd;
    }
};

// Makes a message each so many nanoseconds, and notes when it is there.
class Feed : public collect::Pipe
{
  public:
    Feed(const std::string& scenario, uint32_t messageBytes, int64_t each_ns, double lose_s)
        : m_scenario(scenario),
          m_network(m_scenario),
          m_messageBytes(messageBytes),
          m_each(NanoSeconds(each_ns)),
          m_lose(CreateObject<LoseOne>())
    {
        m_lose->after = Seconds(lose_s);
        m_network.At(1)->GetDevice(1)->SetAttribute("ReceiveErrorModel", PointerValue(m_lose));
        target = m_network.NextAddress(1);
        Listen(m_network.At(0), m_network.At(1));
        Connect();
    }

    ~Feed() override { Simulator::Destroy(); }

    void RunUntil(double time_s)
    {
        Simulator::Stop(Seconds(time_s) - Simulator::Now());
        Simulator::Run();
    }

    // When each message was there, from the first one made on, seconds.
    const std::vector<double>& There() const { return m_there; }
    double MadeFrom() const { return m_begun.GetSeconds(); }
    double Lost() const { return m_lose->lost_s; }
    uint32_t WindowAtLoss() const { return m_windowAtLoss; }

    void Opened() override
    {
        m_begun = Simulator::Now();
        Wake(m_each, 0);
    }

    void Woken(int) override
    {
        m_made += m_messageBytes;
        if (m_lose->lost_s < 0)
        {
            m_windowAtLoss = Peek::Window(out);
        }
        Wake(m_each, 0);
        Sendable();
    }

    void Sendable() override
    {
        while (m_sent < m_made)
        {
            uint64_t n = std::min<uint64_t>(m_made - m_sent, out->GetTxAvailable());
            int sent = n == 0 ? 0 : out->Send(Create<Packet>(uint32_t(n)));
            if (sent <= 0)
            {
                return; // it calls again
            }
            m_sent += sent;
        }
    }

    void Readable(Ptr<Socket> socket) override
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            m_received += packet->GetSize();
            while (m_received >= (m_there.size() + 1) * uint64_t(m_messageBytes))
            {
                m_there.push_back(Simulator::Now().GetSeconds());
            }
        }
    }

    void Accepted(Ptr<Socket> socket) override { socket->SetRecvCallback(collect::HearReadable(this)); }
    void Broken() override { NS_FATAL_ERROR("the connection broke"); }
    void Left(uint32_t) override {}

  private:
    collect::CleanSlate m_cleanSlate;
    collect::Scenario m_scenario;
    collect::Network m_network;
    uint32_t m_messageBytes;
    Time m_each;
    Ptr<LoseOne> m_lose;
    Time m_begun;
    uint64_t m_made = 0, m_sent = 0, m_received = 0;
    uint32_t m_windowAtLoss = 0;
    std::vector<double> m_there;
};

} // namespace evlbi

#endif // DATACOLLECT_EVLBI_H
