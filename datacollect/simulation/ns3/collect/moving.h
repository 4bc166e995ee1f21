// Bytes on their way: from what a host has into TCP, and out of TCP into what the next one has.
#ifndef DATACOLLECT_COLLECT_MOVING_H
#define DATACOLLECT_COLLECT_MOVING_H

#include "collect/connections.h"
#include "collect/holdings.h"
#include "collect/pipes.h"
#include "collect/recording.h"
#include "collect/reporting.h"
#include "collect/scenario.h"
#include "collect/stalls.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace collect
{

using namespace ns3;

class Mover
{
  public:
    Mover(const Scenario& scenario,
          Connections& connections,
          Holdings& holdings,
          StallWatch& stalls,
          Reports& reports,
          Records& records)
        : m_connections(connections),
          m_holdings(holdings),
          m_stalls(stalls),
          m_reports(reports),
          m_records(records),
          m_segment(scenario.segment)
    {
    }

    // Decisions -----------------------------------------------------------------------------

    void Open(int id, const std::vector<int>& hosts, uint64_t window, double pace)
    {
        m_stalls.Watch(m_connections.Open(this, id, hosts, window, pace));
    }

    void Send(int id, int source, uint64_t offset, uint64_t bytes)
    {
        Connection* c = m_connections.At(id);
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
        m_stalls.Watch(c);
    }

    void Close(int id, bool drop)
    {
        Connection* c = m_connections.At(id);
        c->closing = true;
        if (drop && !c->closed)
        {
            m_connections.End(c);
        }
        CloseIfEmpty(c);
    }

    // What happens to connections -----------------------------------------------------------

    // The far end of a hop is there: of a chain's last it is the receiver, else the next begins.
    void Accepted(Connection* c, size_t hop, Ptr<Socket> socket)
    {
        if (c->closed)
        {
            socket->Close();
        }
        else if (hop < c->further.size())
        {
            socket->SetRecvCallback(HearReadable(c->further[hop].get()));
            m_connections.Begin(c->further[hop].get());
        }
        else
        {
            socket->SetRecvCallback(HearReadable(c));
            ReadFrom(c);
        }
    }

    void HopOpened(Connection* c, Pipe* hop)
    {
        if (!c->closed && m_connections.HopOpened(c, hop))
        {
            Opened(c);
        }
    }

    void Opened(Connection* c)
    {
        c->progress = Simulator::Now();
        c->stalled = false;
        c->tokensAt = Simulator::Now();
        m_connections.Opened(c);
        Pump(c);
        ReadBlocked(c->from);
        m_stalls.Watch(c);
        c->roomAsked = true;
        TellRoom(c);
        CloseIfEmpty(c);
    }

    void Broken(Connection* c) { m_connections.End(c); }

    // Bytes have been sent and acknowledged.
    void Left(Connection* c, uint32_t bytes)
    {
        c->left = std::min(c->left + bytes, c->queued);
        while (c->leaving < c->ranges.size() && c->left >= c->leavingEnd)
        {
            c->roomAsked = true;
            if (++c->leaving < c->ranges.size())
            {
                c->leavingEnd += c->ranges[c->leaving].bytes;
            }
        }
        TellRoom(c);
    }

    void Woken(Connection* c, int why)
    {
        if (why == PACE)
        {
            Pump(c);
        }
        else
        {
            m_stalls.Check(c);
        }
    }

    // Give TCP what there is and what fits.
    void Pump(Connection* c)
    {
        while (c->open && !c->closed && c->AnyToHand())
        {
            const Range& r = c->Handing();
            uint64_t rest = r.bytes - c->handingDone;
            uint64_t n = std::min(rest, m_holdings.Available(c->from, r.source, c->HandingAt()));
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

    // Take from TCP what has come and what there is room for.
    void ReadFrom(Connection* c)
    {
        Ptr<Socket> in = c->Receiver();
        while (!c->closed && in && c->arriving < c->ranges.size())
        {
            uint64_t n = std::min<uint64_t>(in->GetRxAvailable(),
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
            Ptr<Packet> packet = in->Recv(uint32_t(n), 0);
            Arrive(c, packet->GetSize());
        }
    }

    // Pass on what a relay of a chain has: no more than TCP takes, and no more than has come.
    void Pass(Splice* s)
    {
        Ptr<Socket> in = s->before->in;
        while (!s->of->closed && in)
        {
            uint64_t there = in->GetRxAvailable();
            uint64_t fits = s->out->GetTxAvailable() / m_segment * m_segment;
            uint64_t n = std::min({there, fits, uint64_t(64 * m_segment)});
            if (n == 0)
            {
                s->narrowed = s->narrowed || there > 0;
                return;
            }
            uint32_t size = in->Recv(uint32_t(n), 0)->GetSize();
            if (s->out->Send(Create<Packet>(size)) != int(size))
            {
                NS_FATAL_ERROR("a relay could not pass on what its TCP said it would take");
            }
            Announce(in, size, s->narrowed, s->unannounced);
        }
    }

  private:
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
                c->paceTimer = c->Wake(wait, int(PACE));
            }
            return 0;
        }
        return batch;
    }

    // How much the receiving host may read: its relay buffer bounds others' data. Where one of its
    // connections has nothing under way and waits for just these bytes, a segment more: a buffer
    // full of what has to leave later must not hold up for ever what has to leave first.
    uint64_t Room(const Connection* c) const
    {
        const Range& r = c->ranges[c->arriving];
        uint64_t room = m_holdings.Room(c->to, r.source);
        if (room > 0)
        {
            return room;
        }
        for (const Connection* next : m_connections.OutOf(c->to))
        {
            if (next->open && next->handed == next->arrived && next->AnyToHand() &&
                next->Handing().source == r.source &&
                next->HandingAt() == r.offset + c->arrivingDone)
            {
                return m_segment;
            }
        }
        return 0;
    }

    void Arrive(Connection* c, uint64_t n)
    {
        const Range r = c->ranges[c->arriving];
        Passed passed = m_holdings.Pass(c->from, c->to, r.source, r.offset + c->arrivingDone, n);
        c->arrived += n;
        c->arrivingDone += n;
        m_records.Moved(c, r.source, n, passed);
        m_stalls.Moved(c);
        if (c->arrivingDone == r.bytes)
        {
            ++c->arriving;
            c->arrivingDone = 0;
            TellArrived(c, r);
        }
        if (m_holdings.Complete() && !m_records.Complete())
        {
            m_records.Finish();
            Simulator::Stop();
        }
        Announce(c->Receiver(), n, c->narrowed, c->unannounced);
        if (passed.stored > 0)
        {
            PumpFrom(c->to, r.source);
        }
        ReadBlocked(c->from);
        CloseIfEmpty(c);
    }

    void PumpFrom(int host, int source)
    {
        for (Connection* next : m_connections.OutOf(host))
        {
            if (next->AnyToHand() && next->Handing().source == source)
            {
                Pump(next);
                m_stalls.Watch(next);
            }
        }
    }

    // Bytes have left the host: its readers may have room again.
    void ReadBlocked(int host)
    {
        if (!m_holdings.Bounded())
        {
            return;
        }
        for (Connection* c : std::vector<Connection*>(m_connections.Into(host)))
        {
            if (c->blocked && Room(c) >= m_segment)
            {
                c->blocked = false;
                ReadFrom(c);
            }
        }
    }

    // Tell the sender, where its reader fell behind, of bytes that were read.
    void Announce(Ptr<Socket> in, uint64_t n, bool& narrowed, uint64_t& unannounced)
    {
        if (!narrowed)
        {
            return;
        }
        unannounced += n;
        if (unannounced >= 2 * m_segment)
        {
            Tcp::UpdateWindow(in);
            unannounced = 0;
            narrowed = in->GetRxAvailable() > 0;
        }
    }

    void CloseIfEmpty(Connection* c)
    {
        if (c->closing && !c->closed && c->arrived == c->queued)
        {
            m_connections.End(c);
        }
    }

    void TellArrived(const Connection* c, const Range& r)
    {
        Event e;
        e.kind = ARRIVED;
        e.time_s = m_reports.Now();
        e.connection = c->id;
        e.host = c->to;
        e.source = r.source;
        e.offset = int64_t(r.offset);
        e.bytes = r.bytes;
        m_reports.Tell(e);
    }

    void TellRoom(Connection* c)
    {
        uint64_t waiting = c->queued - c->left;
        if (c->open && !c->closing && c->roomAsked && waiting < c->window)
        {
            c->roomAsked = false;
            m_reports.Tell(ROOM, c->id, c->window - waiting);
        }
    }

    Connections& m_connections;
    Holdings& m_holdings;
    StallWatch& m_stalls;
    Reports& m_reports;
    Records& m_records;
    uint32_t m_segment;
};

// What a connection's sockets call ------------------------------------------------------------

inline void
Connection::Accepted(Ptr<Socket> socket)
{
    mover->Accepted(this, 0, socket);
}

inline void
Connection::Opened()
{
    mover->HopOpened(this, this);
}

inline void
Connection::Broken()
{
    if (!closed)
    {
        mover->Broken(this);
    }
}

inline void
Connection::Readable(Ptr<Socket>)
{
    mover->ReadFrom(this);
}

inline void
Connection::Sendable()
{
    mover->Pump(this);
}

inline void
Connection::Left(uint32_t bytes)
{
    if (!closed)
    {
        mover->Left(this, bytes);
    }
}

inline void
Connection::Woken(int why)
{
    mover->Woken(this, why);
}

} // namespace collect

#endif // DATACOLLECT_COLLECT_MOVING_H
