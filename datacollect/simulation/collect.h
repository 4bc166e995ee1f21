// A collection in ns-3: nodes, wires, background traffic, and connections that move byte ranges.
//
// This moves bytes and reports what happened; it decides nothing. Who drives it alternates
// between Simulation::Run, which returns when there is something to report, and Open, Send, Close
// and WakeAt, which take effect at the instant reported. Nothing calls back into the driver, so no
// exception crosses ns-3 and no callback can be collected as garbage.
//
// The same text serves two drivers: ns3_worker.py compiles it with cppyy, a C++ program includes
// it. Needs ns-3.44 (core, network, internet, point-to-point, traffic-control modules).
#ifndef DATACOLLECT_COLLECT_H
#define DATACOLLECT_COLLECT_H

#include "ns3/config.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-address-generator.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-helper.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4.h"
#include "ns3/mac48-address.h"
#include "ns3/names.h"
#include "ns3/node.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/random-variable-stream.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/tcp-socket-base.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/udp-socket-factory.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace collect
{

using namespace ns3;

const uint32_t FIRST_ADDRESS = 0x0A000001; // 10.0.0.1 is node 0: an address is a node's number
const uint32_t NO_WIRE = 0xffffffff;

// Why a Pipe is woken.
enum Why
{
    START,
    DATAGRAM,
    PACE,
    STALL
};

// A set of byte positions, kept as disjoint intervals [start, end).
class Ranges
{
  public:
    // Return how many of [start, end) were not in the set yet.
    uint64_t Add(uint64_t start, uint64_t end)
    {
        uint64_t covered = 0;
        uint64_t from = start;
        uint64_t to = end;
        auto it = m_end.upper_bound(start);
        if (it != m_end.begin() && std::prev(it)->second >= start)
        {
            --it;
        }
        while (it != m_end.end() && it->first <= end)
        {
            uint64_t overlap_start = std::max(start, it->first);
            uint64_t overlap_end = std::min(end, it->second);
            covered += overlap_end > overlap_start ? overlap_end - overlap_start : 0;
            from = std::min(from, it->first);
            to = std::max(to, it->second);
            it = m_end.erase(it);
        }
        m_end[from] = to;
        total += end - start - covered;
        return end - start - covered;
    }

    // Return how many positions from `start` on are in the set without a gap.
    uint64_t From(uint64_t start) const
    {
        auto it = m_end.upper_bound(start);
        if (it == m_end.begin())
        {
            return 0;
        }
        --it;
        return it->second > start ? it->second - start : 0;
    }

    uint64_t total = 0;

  private:
    std::map<uint64_t, uint64_t> m_end;
};

// Routes computed elsewhere: a node's table holds the wire towards every node, by its number.
// Ipv4GlobalRouting scans its routes at every hop and takes twice the time.
class TableRouting : public Ipv4RoutingProtocol
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("collect::TableRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override { return GetTypeId(); }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header& header,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        Ptr<Ipv4Route> route = Find(header.GetDestination());
        error = route ? Socket::ERROR_NOTERROR : Socket::ERROR_NOROUTETOHOST;
        return route;
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    const UnicastForwardCallback& forward,
                    const MulticastForwardCallback&,
                    const LocalDeliverCallback& deliver,
                    const ErrorCallback& fail) override
    {
        if (header.GetDestination().Get() - FIRST_ADDRESS == node)
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
            return true;
        }
        Ptr<Ipv4Route> route = Find(header.GetDestination());
        if (!route)
        {
            fail(packet, header, Socket::ERROR_NOROUTETOHOST);
            return false;
        }
        forward(route, packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

    uint32_t node = 0;
    const std::vector<Ptr<Ipv4Route>>* routeOfWire = nullptr;
    std::vector<uint32_t> wireTo; // by target node

  protected:
    void DoDispose() override
    {
        m_ipv4 = nullptr;
        Ipv4RoutingProtocol::DoDispose();
    }

  private:
    Ptr<Ipv4Route> Find(Ipv4Address destination) const
    {
        uint32_t target = destination.Get() - FIRST_ADDRESS;
        uint32_t wire = target < wireTo.size() ? wireTo[target] : NO_WIRE;
        return wire == NO_WIRE ? nullptr : (*routeOfWire)[wire];
    }

    Ptr<Ipv4> m_ipv4;
};

class TableRoutingHelper : public Ipv4RoutingHelper
{
  public:
    TableRoutingHelper* Copy() const override { return new TableRoutingHelper(*this); }
    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<TableRouting>();
    }
};

// What ns-3's TCP does only of its own accord.
class Tcp : public TcpSocketBase
{
  public:
    // Tell the sender of a window that has opened, as real stacks do once their reader has caught
    // up; ns-3 would wait for the sender's next probe.
    static void UpdateWindow(Ptr<Socket> socket)
    {
        (PeekPointer(DynamicCast<TcpSocketBase>(socket))->*(&Tcp::SendEmptyPacket))(TcpHeader::ACK);
    }

    // End at once; Close would send all that TCP holds first.
    static void Reset(Ptr<Socket> socket)
    {
        (PeekPointer(DynamicCast<TcpSocketBase>(socket))->*(&Tcp::SendRST))();
    }
};

enum Kind
{
    OPENED,
    STALLED,
    CLOSED,
    ARRIVED,
    ROOM,
    TIMER
};

// One thing to report. `host` is the receiver of an ARRIVED range, `offset` a TIMER's tag.
struct Event
{
    int kind = 0;
    double time_s = 0;
    int connection = 0;
    int host = 0;
    int source = 0;
    int64_t offset = 0;
    uint64_t bytes = 0;
};

struct Range
{
    int source;
    uint64_t offset;
    uint64_t bytes;
};

// Bytes of one source that arrived over one connection between two instants.
struct Move
{
    int connection;
    int source;
    double start_s;
    double finish_s;
    uint64_t bytes;
    uint64_t stored; // that the receiver did not have yet
    uint64_t freed;  // that the sender had not got rid of before
};

class Simulation;

// Two sockets, one at either end. What they call back is virtual: each further kind of ns-3
// Callback costs a tenth of a second of compiling at every start.
struct Pipe
{
    virtual ~Pipe() = default;
    virtual void Accepted(Ptr<Socket> socket) = 0;
    virtual void Opened() = 0;
    virtual void Broken() = 0;
    virtual void Readable(Ptr<Socket> socket) = 0;
    virtual void Sendable() = 0;
    virtual void Left(uint32_t bytes) = 0;
    virtual void Woken(int why) = 0;

    void Listen(Ptr<Node> fromNode, Ptr<Node> toNode);
    void Connect() { out->Connect(target); }

    Ptr<Socket> out;
    Ptr<Socket> in;
    Ptr<Socket> listener;
    InetSocketAddress target{uint16_t(0)};
    uint64_t retransmissions = 0;
};

// An ns-3 callback straight from its implementation; MakeCallback and its like cost a second of
// compiling at every start.
template <typename... Args, typename Action>
Callback<void, Args...>
Hear(Action act)
{
    using Implementation = CallbackImpl<void, Args...>;
    return Callback<void, Args...>(Create<Implementation>(std::function<void(Args...)>(act),
                                                          CallbackComponentVector()));
}

inline Callback<void, Ptr<Socket>>
HearReadable(Pipe* pipe)
{
    return Hear<Ptr<Socket>>([pipe](Ptr<Socket> socket) { pipe->Readable(socket); });
}

// Make the two ends; the sender has yet to connect to `target`, where the receiver listens.
inline void
Pipe::Listen(Ptr<Node> fromNode, Ptr<Node> toNode)
{
    listener = Socket::CreateSocket(toNode, TcpSocketFactory::GetTypeId());
    if (listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), target.GetPort())) != 0)
    {
        NS_FATAL_ERROR("port " << target.GetPort() << " is taken on node " << toNode->GetId());
    }
    listener->Listen();
    auto accepted = [this](Ptr<Socket> socket, const Address&) {
        in = socket;
        listener->Close();
        Accepted(socket);
    };
    listener->SetAcceptCallback(Callback<bool, Ptr<Socket>, const Address&>(),
                                Hear<Ptr<Socket>, const Address&>(accepted));
    out = Socket::CreateSocket(fromNode, TcpSocketFactory::GetTypeId());
    auto broken = Hear<Ptr<Socket>>([this](Ptr<Socket>) { Broken(); });
    out->SetConnectCallback(Hear<Ptr<Socket>>([this](Ptr<Socket>) { Opened(); }), broken);
    out->SetCloseCallbacks(Callback<void, Ptr<Socket>>(), broken);
    out->SetSendCallback(Hear<Ptr<Socket>, uint32_t>([this](Ptr<Socket>, uint32_t) { Sendable(); }));
    out->SetDataSentCallback(
        Hear<Ptr<Socket>, uint32_t>([this](Ptr<Socket>, uint32_t bytes) { Left(bytes); }));
    auto again = [this](Ptr<const Packet> packet,
                        const TcpHeader&,
                        const Address&,
                        const Address&,
                        Ptr<const TcpSocketBase>) { retransmissions += packet->GetSize() > 0; };
    out->TraceConnectWithoutContext("Retransmission",
                                    Hear<Ptr<const Packet>,
                                         const TcpHeader&,
                                         const Address&,
                                         const Address&,
                                         Ptr<const TcpSocketBase>>(again));
    out->Bind();
}

struct Connection : Pipe
{
    void Accepted(Ptr<Socket> socket) override;
    void Opened() override;
    void Broken() override;
    void Readable(Ptr<Socket>) override;
    void Sendable() override;
    void Left(uint32_t bytes) override;
    void Woken(int why) override;

    Simulation* simulation = nullptr;
    int id = 0;
    int from = 0;
    int to = 0;
    uint64_t window = 0; // 0: none
    double pace = 0;     // bytes per second; 0: as TCP likes
    bool open = false;
    bool closing = false;
    bool closed = false;
    bool blocked = false;       // its reader waits for room in the relay's buffer
    bool narrowed = false;      // it did, so that the sender may know of a small window only
    uint64_t unannounced = 0;   // bytes read since the sender was told
    bool roomAsked = false;     // a range was queued since the last report of room
    std::vector<Range> ranges;  // first in, first out; the two ends count bytes
    size_t handing = 0;         // the range that is given to TCP, and how much of it is
    uint64_t handingDone = 0;
    size_t leaving = 0;         // the range that TCP sends
    uint64_t leavingEnd = 0;    // count of bytes at which it ends
    size_t arriving = 0;        // the range that arrives
    uint64_t arrivingDone = 0;
    uint64_t queued = 0;
    uint64_t handed = 0;
    uint64_t left = 0;
    uint64_t arrived = 0;
    double tokens = 0;          // bytes that pacing allows now
    Time tokensAt;
    EventId paceTimer;
    EventId stallTimer;
    bool stalled = false;
    Time progress;              // last time that anything moved
    Time waitsSince;            // when data began to wait for it
    size_t move = SIZE_MAX;     // the one that still grows
};

// Background traffic.
struct Flow : Pipe
{
    void Accepted(Ptr<Socket> socket) override;
    void Opened() override { Sendable(); }
    void Broken() override { broken = true; }
    void Readable(Ptr<Socket> socket) override;
    void Sendable() override;
    void Left(uint32_t) override {}
    void Woken(int why) override;
    void Switch(bool first);

    uint32_t segment = 0;
    bool udp = false;
    uint32_t from = 0;
    uint32_t to = 0;
    double start_s = 0;
    double rate = 0;
    double on_s = 0;
    double off_s = 0;
    Ptr<ExponentialRandomVariable> random;
    Time onUntil;
    uint64_t received = 0;
    bool broken = false;
};

// Counters of everything shared, at one instant.
struct Snapshot
{
    double time_s = NAN;
    std::vector<uint64_t> flowBytes;
    std::vector<uint64_t> wireBytes;
    std::vector<uint64_t> wireDrops;
};

class Simulation
{
  public:
    // Why Run returned.
    enum Reason
    {
        EVENTS,
        TICK,
        LIMIT,
        COOLED,
        NOTHING
    };

    // The scenario as text: a word per line that says what follows; see ns3_scenario.py.
    explicit Simulation(const std::string& scenario)
    {
        Config::Reset();
        Ipv4AddressGenerator::Reset();
        Mac48Address::ResetAllocationIndex();
        Names::Clear();
        std::istringstream in(scenario);
        std::string word;
        while (in >> word)
        {
            Read(word, in);
        }
        Build();
    }

    ~Simulation()
    {
        Simulator::Destroy(); // sockets must be gone before what they call back
    }

    // Simulate on, until something is to be reported.
    int Run()
    {
        if (m_pending.empty())
        {
            m_reason = NOTHING;
            Simulator::Run();
        }
        return m_pending.empty() ? m_reason : EVENTS;
    }

    // What happened, in order. Decisions may add to it: ask until nothing comes.
    std::vector<Event> TakeEvents()
    {
        std::vector<Event> taken;
        taken.swap(m_pending);
        return taken;
    }

    double Now() const { return (Simulator::Now() - m_zero).GetSeconds(); }
    bool Complete() const { return m_complete; }
    uint64_t Collected() const { return m_collected; }
    uint64_t Events() const { return Simulator::GetEventCount(); }

    // True if nothing is queued, opening or awaited: only a decision can move anything now.
    bool Idle() const
    {
        if (m_timers > 0)
        {
            return false;
        }
        for (const auto& outgoing : m_outgoing)
        {
            for (const Connection* c : outgoing)
            {
                if (!c->open || c->arrived < c->queued)
                {
                    return false;
                }
            }
        }
        return true;
    }

    // Begin to measure; the controller's clock is at 0. Runs the background up to there.
    void WarmUp()
    {
        Simulator::Stop(m_zero);
        Simulator::Run();
        m_start = Take();
        Simulator::Schedule(Seconds(m_limit_s), &Simulation::Return, this, int64_t(LIMIT));
        m_tick = Seconds(std::min(m_tick_s, m_wrap_s));
        Simulator::Schedule(m_tick, &Simulation::Tick, this, int64_t(0));
    }

    // Let the background go on once the collection is over; Run returns COOLED.
    void CoolDown(double cool_down_s)
    {
        Simulator::Schedule(Seconds(cool_down_s), &Simulation::Return, this, int64_t(COOLED));
    }

    void Open(int id, int from, int to, uint64_t window, double pace)
    {
        auto owned = std::make_unique<Connection>();
        Connection* c = owned.get();
        m_connections[id] = std::move(owned);
        c->simulation = this;
        c->id = id;
        c->from = from;
        c->to = to;
        c->window = window;
        c->pace = pace;
        c->progress = Simulator::Now();
        m_outgoing[from].push_back(c);
        m_incoming[to].push_back(c);
        uint32_t toNode = m_hostNode[to];
        c->target = InetSocketAddress(AddressOf(toNode), NextPort(toNode));
        c->Listen(m_nodes[m_hostNode[from]], m_nodes[toNode]);
        if (window > 0)
        {
            // What TCP holds until it is acknowledged: no more than this is under way.
            UintegerValue usual;
            c->out->GetAttribute("SndBufSize", usual);
            uint64_t room = std::max<uint64_t>(window, 2 * m_segment);
            c->out->SetAttribute("SndBufSize", UintegerValue(std::min(room, usual.Get())));
        }
        if (++m_opening > m_shortestQueue)
        {
            DrawSynTimeout(c);
        }
        c->Connect();
        WatchStall(c);
    }

    void Send(int id, int source, uint64_t offset, uint64_t bytes)
    {
        Connection* c = m_connections.at(id).get();
        if (c->closed)
        {
            return; // it broke at this very instant; the driver learns of it next
        }
        if (c->arrived == c->queued)
        {
            c->progress = Simulator::Now();
            c->stalled = false;
        }
        c->ranges.push_back({source, offset, bytes});
        c->queued += bytes;
        c->roomAsked = true;
        if (c->ranges.size() == c->leaving + 1)
        {
            c->leavingEnd = c->queued;
        }
        Pump(c);
        ReadBlocked(c->from);
        WatchStall(c);
    }

    void Close(int id, bool drop)
    {
        Connection* c = m_connections.at(id).get();
        c->closing = true;
        if (drop && !c->closed)
        {
            End(c);
        }
        CloseIfEmpty(c);
    }

    static EventId Wake(Pipe* pipe, Time after, int why)
    {
        return Simulator::Schedule(after, &Pipe::Woken, pipe, why);
    }

    void WakeAt(double time_s, int64_t tag)
    {
        ++m_timers;
        Time at = m_zero + Seconds(time_s);
        // Woken half a nanosecond early, who asked would ask again, at the same instant for ever.
        at += NanoSeconds((at - m_zero).GetSeconds() < time_s ? 1 : 0);
        Time after = std::max(at - Simulator::Now(), Time(0));
        Simulator::Schedule(after, &Simulation::OnTimer, this, tag);
    }

    // What was measured, a line each; see ns3.py.
    std::string Results()
    {
        Snapshot end = m_complete ? m_finish : Take();
        std::ostringstream text;
        text.precision(17);
        for (const Move& m : m_moves)
        {
            text << "move " << m.connection << ' ' << m.source << ' ' << m.start_s << ' '
                 << m.finish_s << ' ' << m.bytes << ' ' << m.stored << ' ' << m.freed << '\n';
        }
        for (const auto& entry : m_connections)
        {
            text << "retransmissions " << entry.first << ' ' << entry.second->retransmissions
                 << '\n';
        }
        text << "drawn_syn_timeouts " << m_drawnTimeouts << '\n';
        double lasted = end.time_s - m_start.time_s;
        for (size_t w = 0; w < m_wires.size(); ++w)
        {
            double capacity = m_wires[w].rate * lasted;
            uint64_t bytes = end.wireBytes[w] - m_start.wireBytes[w];
            text << "wire " << w << ' ' << (capacity > 0 ? bytes / capacity : 0.0) << ' '
                 << end.wireDrops[w] - m_start.wireDrops[w] << '\n';
        }
        for (size_t f = 0; f < m_flows.size(); ++f)
        {
            Goodput(text, f, "before", -m_zero.GetSeconds(), 0, m_start.time_s, m_start);
            Goodput(text, f, "during", m_start.time_s, m_start.flowBytes[f], end.time_s, end);
            if (m_complete)
            {
                Goodput(text, f, "after", end.time_s, end.flowBytes[f], Now(), Take());
            }
            if (m_flows[f]->broken)
            {
                text << "broken " << f << '\n';
            }
        }
        return text.str();
    }

  private:
    friend struct Connection;

    struct Wire
    {
        uint32_t tail;
        uint32_t head;
        double rate; // bytes per second
        double delay_s;
        uint32_t queuePackets;
        int64_t back; // the opposite wire of its cable, or -1
        Ptr<DropTailQueue<Packet>> queue;
        uint64_t bytes = 0; // queue's own counters have 32 bits
        uint32_t lastBytes = 0;
    };

    // Building ------------------------------------------------------------------------------

    void Read(const std::string& word, std::istringstream& in)
    {
        if (word == "default")
        {
            std::string name, value;
            in >> name >> value;
            Config::SetDefault(name, StringValue(value));
        }
        else if (word == "seed")
        {
            uint64_t run;
            in >> run;
            RngSeedManager::SetSeed(1);
            RngSeedManager::SetRun(run);
        }
        else if (word == "nodes")
        {
            in >> m_nNodes;
            m_wireTo.assign(m_nNodes, {});
        }
        else if (word == "wire")
        {
            Wire w;
            in >> w.tail >> w.head >> w.rate >> w.delay_s >> w.queuePackets >> w.back;
            m_wires.push_back(w);
        }
        else if (word == "target") // the wire of every node towards this one
        {
            uint32_t target;
            int64_t wire;
            in >> target;
            for (uint32_t node = 0; node < m_nNodes; ++node)
            {
                in >> wire;
                auto& table = m_wireTo[node];
                if (table.size() <= target)
                {
                    table.resize(target + 1, NO_WIRE);
                }
                table[target] = wire < 0 ? NO_WIRE : uint32_t(wire);
            }
        }
        else if (word == "host") // its node, and its backlog
        {
            uint32_t node;
            uint64_t backlog;
            in >> node >> backlog;
            m_hostNode.push_back(node);
            m_backlog.push_back(backlog);
        }
        else if (word == "background")
        {
            auto f = std::make_unique<Flow>();
            in >> f->udp >> f->from >> f->to >> f->start_s >> f->rate >> f->on_s >> f->off_s;
            m_flows.push_back(std::move(f));
        }
        else if (word == "run")
        {
            double zero_s;
            in >> m_destination >> zero_s >> m_limit_s >> m_stall_s >> m_tick_s >> m_relayBytes >>
                m_segment >> m_moveBytes;
            m_zero = Seconds(zero_s);
        }
        else
        {
            NS_FATAL_ERROR("scenario: unknown word " << word);
        }
    }

    void Build()
    {
        m_nodes.reserve(m_nNodes);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.SetRoutingHelper(TableRoutingHelper());
        for (uint32_t n = 0; n < m_nNodes; ++n)
        {
            m_nodes.push_back(CreateObject<Node>());
            stack.Install(m_nodes[n]);
        }
        m_port.assign(m_nNodes, 10000);
        m_routeOfWire.resize(m_wires.size());
        double fastest = 1;
        for (size_t w = 0; w < m_wires.size(); ++w)
        {
            m_shortestQueue = std::min(m_shortestQueue, m_wires[w].queuePackets);
            fastest = std::max(fastest, m_wires[w].rate);
            if (m_wires[w].back < 0 || m_wires[w].back > int64_t(w))
            {
                Cable(w); // the first of two opposite wires builds it
            }
        }
        m_wrap_s = 2e9 / fastest;
        for (uint32_t n = 0; n < m_nNodes; ++n)
        {
            Ptr<Ipv4> ipv4 = m_nodes[n]->GetObject<Ipv4>();
            if (ipv4->GetNInterfaces() > 1)
            {
                ipv4->AddAddress(1, Ipv4InterfaceAddress(AddressOf(n), Ipv4Mask::GetOnes()));
            }
            auto routing = DynamicCast<TableRouting>(ipv4->GetRoutingProtocol());
            routing->node = n;
            routing->routeOfWire = &m_routeOfWire;
            routing->wireTo = std::move(m_wireTo[n]);
        }
        size_t nHosts = m_hostNode.size();
        m_outgoing.resize(nHosts);
        m_incoming.resize(nHosts);
        m_others.assign(nHosts, 0);
        m_here.resize(nHosts);
        m_gone.resize(nHosts);
        m_missing = 0;
        for (size_t h = 0; h < nHosts; ++h)
        {
            m_missing += int(h) == m_destination ? 0 : m_backlog[h];
        }
        for (size_t f = 0; f < m_flows.size(); ++f)
        {
            StartFlow(f);
        }
        m_random = CreateObject<UniformRandomVariable>();
        m_random->SetStream(int64_t(1) << 40); // flows have those from 0 on
    }

    // Two opposite wires share a channel, each with its own rate and queue. No traffic-control
    // layer gets a queue of its own: a drop-tail router has one.
    void Cable(size_t w)
    {
        Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
        channel->SetAttribute("Delay", TimeValue(Seconds(m_wires[w].delay_s)));
        int64_t back = m_wires[w].back;
        End(channel, m_wires[w].tail, int64_t(w));
        End(channel, m_wires[w].head, back);
    }

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
        if (w < 0)
        {
            return;
        }
        device->SetDataRate(DataRate(uint64_t(std::llround(m_wires[w].rate * 8))));
        m_wires[w].queue = queue;
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetSource(AddressOf(node));
        route->SetOutputDevice(device);
        route->SetGateway(AddressOf(m_wires[w].head));
        m_routeOfWire[w] = route;
    }

    static Ipv4Address AddressOf(uint32_t node) { return Ipv4Address(FIRST_ADDRESS + node); }

    // Below 49152, from where on ns-3 numbers the other ends.
    uint16_t NextPort(uint32_t node)
    {
        m_port[node] = m_port[node] >= 49000 ? 10000 : m_port[node] + 1;
        return m_port[node];
    }

    void StartFlow(size_t number)
    {
        Flow* f = m_flows[number].get();
        f->segment = m_segment;
        f->random = CreateObject<ExponentialRandomVariable>();
        f->random->SetStream(int64_t(number));
        f->target = InetSocketAddress(AddressOf(f->to), NextPort(f->to));
        if (f->udp)
        {
            f->in = Socket::CreateSocket(m_nodes[f->to], UdpSocketFactory::GetTypeId());
            f->in->Bind(InetSocketAddress(Ipv4Address::GetAny(), f->target.GetPort()));
            f->in->SetRecvCallback(HearReadable(f));
            f->out = Socket::CreateSocket(m_nodes[f->from], UdpSocketFactory::GetTypeId());
            f->out->Bind();
            f->Connect();
        }
        else
        {
            f->Listen(m_nodes[f->from], m_nodes[f->to]);
        }
        Wake(f, Seconds(f->start_s), int(START));
    }

    // Connections ---------------------------------------------------------------------------

    void OnTimer(int64_t tag)
    {
        --m_timers;
        Event e;
        e.kind = TIMER;
        e.time_s = Now();
        e.offset = tag;
        Push(e);
    }

    // SYNs that a queue drops together would be sent again together, and be dropped together,
    // time-out after time-out. Real hosts' timers are not in step: where more connections are
    // opening than the shortest queue has places, each further one draws its first time-out, once
    // to twice the usual one. As it doubles with every retry, the gaps between those double too.
    void DrawSynTimeout(Connection* c)
    {
        TimeValue usual;
        c->out->GetAttribute("ConnTimeout", usual);
        c->out->SetAttribute("ConnTimeout", TimeValue(usual.Get() * m_random->GetValue(1, 2)));
        ++m_drawnTimeouts;
    }

    // How many bytes of the source from `offset` on the host can send.
    uint64_t Available(int host, int source, uint64_t offset) const
    {
        if (host == source)
        {
            return m_backlog[source] - offset;
        }
        auto found = m_here[host].find(source);
        return found == m_here[host].end() ? 0 : found->second.From(offset);
    }

    // Give TCP what there is and what fits.
    void Pump(Connection* c)
    {
        while (c->open && !c->closed && c->handing < c->ranges.size())
        {
            const Range& r = c->ranges[c->handing];
            uint64_t rest = r.bytes - c->handingDone;
            uint64_t n = std::min(rest, Available(c->from, r.source, r.offset + c->handingDone));
            uint64_t fits = c->out->GetTxAvailable() / m_segment * m_segment;
            n = std::min({n, fits, uint64_t(64 * m_segment)});
            n = c->pace > 0 ? Allowed(c, n) : n;
            if (n == 0 || c->out->Send(Create<Packet>(uint32_t(n))) <= 0)
            {
                return;
            }
            c->tokens -= double(n);
            c->handed += n;
            c->handingDone += n;
            if (c->handingDone == r.bytes)
            {
                ++c->handing;
                c->handingDone = 0;
            }
        }
    }

    // Pacing: a bucket of two segments that fills at the connection's rate.
    uint64_t Allowed(Connection* c, uint64_t wanted)
    {
        Time now = Simulator::Now();
        double depth = 2.0 * m_segment;
        double filled = c->tokens + c->pace * (now - c->tokensAt).GetSeconds();
        c->tokens = std::min(depth, filled);
        c->tokensAt = now;
        uint64_t batch = std::min(wanted, uint64_t(m_segment));
        if (batch > 0 && c->tokens < double(batch))
        {
            if (!c->paceTimer.IsPending())
            {
                // A nanosecond more, that rounding does not wake it before its time.
                Time wait = Seconds((double(batch) - c->tokens) / c->pace) + NanoSeconds(1);
                c->paceTimer = Wake(c, wait, int(PACE));
            }
            return 0;
        }
        return batch;
    }

    void ReadFrom(Connection* c)
    {
        while (!c->closed && c->in && c->arriving < c->ranges.size())
        {
            uint64_t n = std::min<uint64_t>(c->in->GetRxAvailable(),
                                            c->ranges[c->arriving].bytes - c->arrivingDone);
            if (n == 0)
            {
                return;
            }
            n = std::min(n, Room(c));
            if (n == 0)
            {
                c->blocked = true;
                c->narrowed = true;
                return;
            }
            Ptr<Packet> packet = c->in->Recv(uint32_t(n), 0);
            Arrive(c, packet->GetSize());
        }
    }

    // How much the receiving host may read: its relay buffer bounds others' data. Where one of its
    // connections has nothing under way and waits for just these bytes, a segment more: a buffer
    // full of what has to leave later must not hold up for ever what has to leave first.
    uint64_t Room(const Connection* c) const
    {
        const Range& r = c->ranges[c->arriving];
        if (m_relayBytes == 0 || c->to == m_destination || c->to == r.source)
        {
            return UINT64_MAX;
        }
        if (m_others[c->to] < m_relayBytes)
        {
            return m_relayBytes - m_others[c->to];
        }
        for (const Connection* next : m_outgoing[c->to])
        {
            if (next->open && next->handed == next->arrived && next->handing < next->ranges.size())
            {
                const Range& head = next->ranges[next->handing];
                if (head.source == r.source &&
                    head.offset + next->handingDone == r.offset + c->arrivingDone)
                {
                    return m_segment;
                }
            }
        }
        return 0;
    }

    void Arrive(Connection* c, uint64_t n)
    {
        const Range r = c->ranges[c->arriving];
        uint64_t at = r.offset + c->arrivingDone;
        uint64_t stored = c->to == r.source ? 0 : m_here[c->to][r.source].Add(at, at + n);
        uint64_t freed = m_gone[c->from][r.source].Add(at, at + n);
        c->arrived += n;
        c->arrivingDone += n;
        Record(c, r.source, n, stored, freed);
        c->progress = Simulator::Now();
        if (c->stalled)
        {
            c->stalled = false;
            WatchStall(c);
        }
        m_others[c->to] += c->to == m_destination ? 0 : stored;
        m_others[c->from] -= c->from == r.source ? 0 : std::min(freed, m_others[c->from]);
        if (c->to == m_destination)
        {
            m_collected += stored;
            m_missing -= stored;
        }
        if (c->arrivingDone == r.bytes)
        {
            ++c->arriving;
            c->arrivingDone = 0;
            Event e;
            e.kind = ARRIVED;
            e.time_s = Now();
            e.connection = c->id;
            e.host = c->to;
            e.source = r.source;
            e.offset = int64_t(r.offset);
            e.bytes = r.bytes;
            Push(e);
        }
        if (m_missing == 0 && m_destination >= 0 && !m_complete)
        {
            m_complete = true;
            m_finish = Take();
            Simulator::Stop();
        }
        UpdateWindow(c, n);
        if (stored > 0)
        {
            PumpFrom(c->to, r.source);
        }
        ReadBlocked(c->from);
        CloseIfEmpty(c);
    }

    void PumpFrom(int host, int source)
    {
        for (Connection* next : m_outgoing[host])
        {
            if (next->handing < next->ranges.size() &&
                next->ranges[next->handing].source == source)
            {
                Pump(next);
                WatchStall(next);
            }
        }
    }

    // Bytes have left the host: its readers may have room again.
    void ReadBlocked(int host)
    {
        if (m_relayBytes == 0)
        {
            return;
        }
        for (Connection* c : std::vector<Connection*>(m_incoming[host]))
        {
            if (c->blocked && Room(c) >= m_segment)
            {
                c->blocked = false;
                ReadFrom(c);
            }
        }
    }

    void UpdateWindow(Connection* c, uint64_t n)
    {
        if (!c->narrowed)
        {
            return;
        }
        c->unannounced += n;
        if (c->unannounced >= 2 * m_segment)
        {
            Tcp::UpdateWindow(c->in);
            c->unannounced = 0;
            c->narrowed = c->in->GetRxAvailable() > 0;
        }
    }

    // Moves in a row become one, up to a size: a curve needs no point per segment.
    void Record(Connection* c, int source, uint64_t n, uint64_t stored, uint64_t freed)
    {
        double now = Now();
        double before = (c->progress - m_zero).GetSeconds();
        bool steady = c->arrived > n && now - before < 1.0;
        if (c->move != SIZE_MAX && steady)
        {
            Move& m = m_moves[c->move];
            if (m.source == source && m.bytes < m_moveBytes)
            {
                m.finish_s = now;
                m.bytes += n;
                m.stored += stored;
                m.freed += freed;
                return;
            }
        }
        c->move = m_moves.size();
        m_moves.push_back({c->id, source, steady ? before : now, now, n, stored, freed});
    }

    void CloseIfEmpty(Connection* c)
    {
        if (c->closing && !c->closed && c->arrived == c->queued)
        {
            End(c);
        }
    }

    void End(Connection* c)
    {
        c->closed = true;
        m_opening -= !c->open;
        if (c->open && c->handed > c->arrived)
        {
            Tcp::Reset(c->out);
        }
        else
        {
            c->out->Close();
        }
        c->paceTimer.Cancel();
        c->stallTimer.Cancel();
        if (c->in)
        {
            c->in->Close();
        }
        else
        {
            c->listener->Close();
        }
        Drop(m_outgoing[c->from], c);
        Drop(m_incoming[c->to], c);
        Report(CLOSED, c);
    }

    static void Drop(std::vector<Connection*>& list, Connection* c)
    {
        list.erase(std::remove(list.begin(), list.end(), c), list.end());
    }

    // Stalls: one timer per connection that has data to move.
    bool Waits(const Connection* c) const
    {
        if (c->closed || c->arrived == c->queued)
        {
            return false;
        }
        if (c->handed > c->arrived)
        {
            return true;
        }
        const Range& r = c->ranges[c->handing];
        return Available(c->from, r.source, r.offset + c->handingDone) > 0;
    }

    void WatchStall(Connection* c)
    {
        if (m_stall_s > 0 && !c->stallTimer.IsPending() && !c->stalled && Waits(c))
        {
            c->waitsSince = Simulator::Now();
            c->stallTimer = Wake(c, Seconds(m_stall_s), int(STALL));
        }
    }

    void CheckStall(Connection* c)
    {
        if (!Waits(c))
        {
            return;
        }
        Time since = std::max(c->progress, c->waitsSince);
        Time left = since + Seconds(m_stall_s) - Simulator::Now();
        if (left.IsStrictlyPositive())
        {
            c->stallTimer = Wake(c, left, int(STALL));
            return;
        }
        c->stalled = true;
        Report(STALLED, c);
    }

    // Reports -------------------------------------------------------------------------------

    void Push(const Event& e)
    {
        m_pending.push_back(e);
        Simulator::Stop();
    }

    void Report(int kind, const Connection* c, uint64_t bytes = 0)
    {
        Event e;
        e.kind = kind;
        e.time_s = Now();
        e.connection = c->id;
        e.bytes = bytes;
        Push(e);
    }

    void ReportRoom(Connection* c)
    {
        uint64_t waiting = c->queued - c->left;
        if (c->open && !c->closing && c->roomAsked && waiting < c->window)
        {
            c->roomAsked = false;
            Report(ROOM, c, c->window - waiting);
        }
    }

    void Return(int64_t reason)
    {
        m_reason = int(reason);
        Simulator::Stop();
    }

    void Tick(int64_t)
    {
        CountWires();
        Simulator::Schedule(m_tick, &Simulation::Tick, this, int64_t(0));
        Return(TICK);
    }

    void CountWires()
    {
        for (Wire& w : m_wires)
        {
            uint32_t now = w.queue->GetTotalReceivedBytes();
            w.bytes += uint32_t(now - w.lastBytes);
            w.lastBytes = now;
        }
    }

    Snapshot Take()
    {
        CountWires();
        Snapshot s;
        s.time_s = Now();
        for (const auto& f : m_flows)
        {
            s.flowBytes.push_back(f->received);
        }
        for (const Wire& w : m_wires)
        {
            s.wireBytes.push_back(w.bytes - w.queue->GetNBytes());
            s.wireDrops.push_back(w.queue->GetTotalDroppedPackets());
        }
        return s;
    }

    void Goodput(std::ostringstream& text,
                 size_t f,
                 const char* phase,
                 double start_s,
                 uint64_t before,
                 double end_s,
                 const Snapshot& end) const
    {
        double start = std::max(start_s, m_flows[f]->start_s - m_zero.GetSeconds());
        if (end_s > start)
        {
            text << "flow " << f << ' ' << phase << ' '
                 << double(end.flowBytes[f] - before) / (end_s - start) << '\n';
        }
    }

    uint32_t m_nNodes = 0;
    std::vector<Ptr<Node>> m_nodes;
    std::vector<uint16_t> m_port;
    std::vector<Wire> m_wires;
    std::vector<Ptr<Ipv4Route>> m_routeOfWire;
    std::vector<std::vector<uint32_t>> m_wireTo; // until the nodes have them
    std::vector<uint32_t> m_hostNode;
    std::vector<uint64_t> m_backlog;
    std::vector<std::unique_ptr<Flow>> m_flows;
    std::map<int, std::unique_ptr<Connection>> m_connections;
    std::vector<std::vector<Connection*>> m_outgoing; // by host, not closed
    std::vector<std::vector<Connection*>> m_incoming;
    std::vector<std::map<int, Ranges>> m_here; // of each host, by source: what ever arrived
    std::vector<std::map<int, Ranges>> m_gone; // the same: what arrived at a next host
    std::vector<uint64_t> m_others;          // others' bytes that a host holds
    std::vector<Event> m_pending;
    std::vector<Move> m_moves;
    int m_destination = -1; // a host, or -1: nothing is ever complete
    uint64_t m_missing = 0;
    uint64_t m_collected = 0;
    bool m_complete = false;
    int m_timers = 0;
    uint32_t m_shortestQueue = UINT32_MAX; // packets
    uint32_t m_opening = 0;                // connections that are neither open nor closed
    uint32_t m_drawnTimeouts = 0;
    Ptr<UniformRandomVariable> m_random;
    int m_reason = NOTHING;
    Time m_zero; // when the controller's clock starts
    Time m_tick;
    double m_limit_s = 0;
    double m_stall_s = 0;
    double m_tick_s = 1;
    double m_wrap_s = 1; // within which no wire fills a 32-bit counter
    uint64_t m_relayBytes = 0; // 0: no bound
    uint32_t m_segment = 1448;
    uint64_t m_moveBytes = 1;
    Snapshot m_start;
    Snapshot m_finish;
};

// What a connection's sockets call ------------------------------------------------------------

inline void
Connection::Accepted(Ptr<Socket> socket)
{
    if (closed)
    {
        socket->Close();
        return;
    }
    socket->SetRecvCallback(HearReadable(this));
    simulation->ReadFrom(this);
}

inline void
Connection::Opened()
{
    if (closed)
    {
        return;
    }
    open = true;
    --simulation->m_opening;
    progress = Simulator::Now();
    stalled = false;
    tokensAt = Simulator::Now();
    simulation->Report(OPENED, this);
    simulation->Pump(this);
    simulation->ReadBlocked(from);
    simulation->WatchStall(this);
    roomAsked = true;
    simulation->ReportRoom(this);
    simulation->CloseIfEmpty(this);
}

inline void
Connection::Broken()
{
    if (!closed)
    {
        simulation->End(this);
    }
}

inline void
Connection::Readable(Ptr<Socket>)
{
    simulation->ReadFrom(this);
}

inline void
Connection::Sendable()
{
    simulation->Pump(this);
}

inline void
Connection::Left(uint32_t bytes)
{
    if (closed)
    {
        return;
    }
    left = std::min(left + bytes, queued);
    while (leaving < ranges.size() && left >= leavingEnd)
    {
        roomAsked = true;
        if (++leaving < ranges.size())
        {
            leavingEnd += ranges[leaving].bytes;
        }
    }
    simulation->ReportRoom(this);
}

inline void
Connection::Woken(int why)
{
    if (why == PACE)
    {
        simulation->Pump(this);
    }
    else
    {
        simulation->CheckStall(this);
    }
}

// Background traffic --------------------------------------------------------------------------

inline void
Flow::Accepted(Ptr<Socket> socket)
{
    socket->SetRecvCallback(HearReadable(this));
}

inline void
Flow::Readable(Ptr<Socket> socket)
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

inline void
Flow::Sendable()
{
    while (uint32_t n = std::min(out->GetTxAvailable() / segment, 64u))
    {
        if (out->Send(Create<Packet>(n * segment)) <= 0)
        {
            break;
        }
    }
}

inline void
Flow::Woken(int why)
{
    if (why == START && !udp)
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
        Simulation::Wake(this, Seconds(segment / rate), int(DATAGRAM));
    }
}

// Go on to the next time on. The first state is drawn as if the source had run for ever.
inline void
Flow::Switch(bool first)
{
    double off = off_s > 0 ? random->GetValue(off_s, 0) : 0;
    double on = off_s > 0 ? random->GetValue(on_s, 0) : 1e9;
    if (first && off_s > 0)
    {
        // An exponential time of mean 1 is below -log(1 - p) with probability p = on / (on + off).
        double drawn = random->GetValue(1, 0);
        off = drawn < -std::log(off_s / (on_s + off_s)) ? 0 : off;
    }
    onUntil = Simulator::Now() + Seconds(off + on);
    Simulation::Wake(this, Seconds(off), int(DATAGRAM));
}

} // namespace collect

#endif // DATACOLLECT_COLLECT_H
