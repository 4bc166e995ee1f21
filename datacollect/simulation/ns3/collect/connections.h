// Connections of the collection: what each has queued and moved, and how they begin and end.
#ifndef DATACOLLECT_COLLECT_CONNECTIONS_H
#define DATACOLLECT_COLLECT_CONNECTIONS_H

#include "collect/building.h"
#include "collect/pipes.h"
#include "collect/ranges.h"
#include "collect/reporting.h"
#include "collect/scenario.h"

#include "ns3/event-id.h"
#include "ns3/random-variable-stream.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace collect
{

using namespace ns3;

class Mover;
struct Connection;

// A further hop of a chain: its relay passes on what has come on the hop before, as it comes. What
// its sockets call is in splicing.h.
struct Splice : Pipe
{
    void Accepted(Ptr<Socket> socket) override;
    void Opened() override;
    void Broken() override;
    void Readable(Ptr<Socket>) override;
    void Sendable() override;
    void Left(uint32_t) override {}
    void Woken(int) override {}

    Connection* of = nullptr;
    Pipe* before = nullptr;
    bool narrowed = false;    // it did not pass on all that was there
    uint64_t unannounced = 0; // bytes read since the hop before was told
};

// A connection, or a chain: then its own two sockets are the first hop's. What its sockets call is
// in moving.h.
struct Connection : Pipe
{
    void Accepted(Ptr<Socket> socket) override;
    void Opened() override;
    void Broken() override;
    void Readable(Ptr<Socket>) override;
    void Sendable() override;
    void Left(uint32_t bytes) override;
    void Woken(int why) override;

    // The range that is to be given to TCP next.
    bool AnyToHand() const { return handing < ranges.size(); }
    const Range& Handing() const { return ranges[handing]; }
    uint64_t HandingAt() const { return Handing().offset + handingDone; }

    // Where what is sent ends up.
    Ptr<Socket> Receiver() const { return further.empty() ? in : further.back()->in; }

    Mover* mover = nullptr;
    std::vector<std::unique_ptr<Splice>> further; // a chain's hops after the first
    int id = 0;
    int from = 0;
    int to = 0;
    uint64_t window = 0; // 0: none
    double pace = 0;     // bytes per second; 0: as TCP likes
    bool open = false; // and so are all hops of a chain
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

class Connections
{
  public:
    Connections(const Scenario& scenario, Network& network, Reports& reports)
        : m_network(network),
          m_reports(reports),
          m_hostNode(scenario.hostNode),
          m_segment(scenario.segment),
          m_outgoing(scenario.hostNode.size()),
          m_incoming(scenario.hostNode.size()),
          m_random(CreateObject<UniformRandomVariable>())
    {
        m_random->SetStream(int64_t(1) << 40); // flows have those from 0 on
    }

    Connection* Open(Mover* mover,
                     int id,
                     const std::vector<int>& hosts,
                     uint64_t window,
                     double pace)
    {
        auto owned = std::make_unique<Connection>();
        Connection* c = owned.get();
        m_all[id] = std::move(owned);
        c->mover = mover;
        c->id = id;
        c->from = hosts.front();
        c->to = hosts.back();
        c->window = window;
        c->pace = pace;
        c->progress = Simulator::Now();
        m_outgoing[c->from].push_back(c);
        m_incoming[c->to].push_back(c);
        MakeEnds(c, hosts[0], hosts[1], window);
        for (size_t hop = 1; hop + 1 < hosts.size(); ++hop)
        {
            Pipe* before = Last(c);
            Bound("RcvBufSize", before->listener, window);
            auto splice = std::make_unique<Splice>();
            splice->of = c;
            splice->before = before;
            MakeEnds(splice.get(), hosts[hop], hosts[hop + 1], window);
            c->further.push_back(std::move(splice));
        }
        Begin(c);
        return c;
    }

    // Connect one hop's ends.
    void Begin(Pipe* hop)
    {
        hop->connecting = true;
        if (++m_opening > m_network.shortestQueue)
        {
            DrawSynTimeout(hop);
        }
        hop->Connect();
    }

    // One hop is open; true if they all are.
    bool HopOpened(Connection* c, Pipe* hop)
    {
        hop->connecting = false;
        --m_opening;
        return hop == Last(c);
    }

    void Opened(Connection* c)
    {
        c->open = true;
        m_reports.Tell(OPENED, c->id);
    }

    void End(Connection* c)
    {
        c->closed = true;
        bool cut = c->open && c->handed > c->arrived;
        EndOf(c, cut);
        c->paceTimer.Cancel();
        c->stallTimer.Cancel();
        for (const auto& splice : c->further)
        {
            EndOf(splice.get(), cut);
        }
        Drop(m_outgoing[c->from], c);
        Drop(m_incoming[c->to], c);
        m_reports.Tell(CLOSED, c->id);
    }

    // True if nothing is queued or opening.
    bool Idle() const
    {
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

    Connection* At(int id) const { return m_all.at(id).get(); }
    const std::map<int, std::unique_ptr<Connection>>& All() const { return m_all; }
    uint32_t DrawnTimeouts() const { return m_drawnTimeouts; }

    // Those of a host that are not closed.
    const std::vector<Connection*>& OutOf(int host) const { return m_outgoing[host]; }
    const std::vector<Connection*>& Into(int host) const { return m_incoming[host]; }

  private:
    // SYNs that a queue drops together would be sent again together, and be dropped together,
    // time-out after time-out. Real hosts' timers are not in step: where more connections are
    // opening than the shortest queue has places, each further one draws its first time-out, once
    // to twice the usual one. As it doubles with every retry, the gaps between those double too.
    void DrawSynTimeout(Pipe* hop)
    {
        TimeValue usual;
        hop->out->GetAttribute("ConnTimeout", usual);
        hop->out->SetAttribute("ConnTimeout", TimeValue(usual.Get() * m_random->GetValue(1, 2)));
        ++m_drawnTimeouts;
    }

    static Pipe* Last(Connection* c)
    {
        return c->further.empty() ? static_cast<Pipe*>(c) : c->further.back().get();
    }

    void MakeEnds(Pipe* hop, int from, int to, uint64_t window)
    {
        hop->target = m_network.NextAddress(m_hostNode[to]);
        hop->Listen(m_network.At(m_hostNode[from]), m_network.At(m_hostNode[to]));
        Bound("SndBufSize", hop->out, window); // no more than this is under way
    }

    // What TCP holds until it is acknowledged, or read.
    void Bound(const char* buffer, Ptr<Socket> socket, uint64_t window)
    {
        if (window > 0)
        {
            UintegerValue usual;
            socket->GetAttribute(buffer, usual);
            uint64_t room = std::max<uint64_t>(window, 2 * m_segment);
            socket->SetAttribute(buffer, UintegerValue(std::min(room, usual.Get())));
        }
    }

    void EndOf(Pipe* hop, bool cut)
    {
        m_opening -= hop->connecting;
        hop->connecting = false;
        if (cut)
        {
            Tcp::Reset(hop->out);
        }
        else
        {
            hop->out->Close();
        }
        if (hop->in)
        {
            hop->in->Close();
        }
        else
        {
            hop->listener->Close();
        }
    }

    static void Drop(std::vector<Connection*>& list, Connection* c)
    {
        list.erase(std::remove(list.begin(), list.end(), c), list.end());
    }

    Network& m_network;
    Reports& m_reports;
    const std::vector<uint32_t>& m_hostNode;
    uint32_t m_segment;
    std::map<int, std::unique_ptr<Connection>> m_all;
    std::vector<std::vector<Connection*>> m_outgoing; // by host
    std::vector<std::vector<Connection*>> m_incoming;
    uint32_t m_opening = 0; // hops, neither open nor closed
    uint32_t m_drawnTimeouts = 0;
    Ptr<UniformRandomVariable> m_random;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_CONNECTIONS_H
