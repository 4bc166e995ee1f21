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

// What its sockets call is in moving.h.
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

    Mover* mover = nullptr;
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

    Connection* Open(Mover* mover, int id, int from, int to, uint64_t window, double pace)
    {
        auto owned = std::make_unique<Connection>();
        Connection* c = owned.get();
        m_all[id] = std::move(owned);
        c->mover = mover;
        c->id = id;
        c->from = from;
        c->to = to;
        c->window = window;
        c->pace = pace;
        c->progress = Simulator::Now();
        m_outgoing[from].push_back(c);
        m_incoming[to].push_back(c);
        c->target = m_network.NextAddress(m_hostNode[to]);
        c->Listen(m_network.At(m_hostNode[from]), m_network.At(m_hostNode[to]));
        if (window > 0)
        {
            // What TCP holds until it is acknowledged: no more than this is under way.
            UintegerValue usual;
            c->out->GetAttribute("SndBufSize", usual);
            uint64_t room = std::max<uint64_t>(window, 2 * m_segment);
            c->out->SetAttribute("SndBufSize", UintegerValue(std::min(room, usual.Get())));
        }
        if (++m_opening > m_network.shortestQueue)
        {
            DrawSynTimeout(c);
        }
        c->Connect();
        return c;
    }

    void Opened(Connection* c)
    {
        c->open = true;
        --m_opening;
        m_reports.Tell(OPENED, c->id);
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
    void DrawSynTimeout(Connection* c)
    {
        TimeValue usual;
        c->out->GetAttribute("ConnTimeout", usual);
        c->out->SetAttribute("ConnTimeout", TimeValue(usual.Get() * m_random->GetValue(1, 2)));
        ++m_drawnTimeouts;
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
    uint32_t m_opening = 0; // neither open nor closed
    uint32_t m_drawnTimeouts = 0;
    Ptr<UniformRandomVariable> m_random;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_CONNECTIONS_H
