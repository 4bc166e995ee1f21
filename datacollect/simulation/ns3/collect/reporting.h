// What happened, for who drives the simulation: events in order, alarms, and why it has stopped.
#ifndef DATACOLLECT_COLLECT_REPORTING_H
#define DATACOLLECT_COLLECT_REPORTING_H

#include "ns3/nstime.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace collect
{

using namespace ns3;

// driver.py has the same numbers.
enum Kind
{
    OPENED,
    STALLED,
    CLOSED,
    ARRIVED,
    ROOM,
    TIMER
};

// Why the simulation has stopped; driver.py has the same numbers.
enum Reason
{
    EVENTS,
    TICK,
    LIMIT,
    COOLED,
    NOTHING
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

class Reports
{
  public:
    explicit Reports(Time zero) : m_zero(zero) {}

    // By the controller's clock.
    double Now() const { return Since(Simulator::Now()); }
    double Since(Time at) const { return (at - m_zero).GetSeconds(); }

    // Simulate on, until there is something to report; return why.
    int Run()
    {
        if (m_pending.empty())
        {
            m_reason = NOTHING;
            Simulator::Run();
        }
        return m_pending.empty() ? m_reason : int(EVENTS);
    }

    // What happened, in order. Decisions may add to it: ask until nothing comes.
    std::vector<Event> Take()
    {
        std::vector<Event> taken;
        taken.swap(m_pending);
        return taken;
    }

    void Tell(const Event& e)
    {
        m_pending.push_back(e);
        Simulator::Stop();
    }

    void Tell(int kind, int connection, uint64_t bytes = 0)
    {
        Event e;
        e.kind = kind;
        e.time_s = Now();
        e.connection = connection;
        e.bytes = bytes;
        Tell(e);
    }

    void WakeAt(double time_s, int64_t tag)
    {
        ++m_alarms;
        Time at = m_zero + Seconds(time_s);
        // Woken half a nanosecond early, who asked would ask again, at the same instant for ever.
        at += NanoSeconds(Since(at) < time_s ? 1 : 0);
        Time after = std::max(at - Simulator::Now(), Time(0));
        Simulator::Schedule(after, &Reports::Ring, this, tag);
    }

    bool AnyAlarm() const { return m_alarms > 0; }

    // Alike to Ring, so that only one kind of event has to be compiled.
    void StopIn(Time after, int reason)
    {
        Simulator::Schedule(after, &Reports::Stop, this, int64_t(reason));
    }

  private:
    void Stop(int64_t reason)
    {
        m_reason = int(reason);
        Simulator::Stop();
    }

    void Ring(int64_t tag)
    {
        --m_alarms;
        Event e;
        e.kind = TIMER;
        e.time_s = Now();
        e.offset = tag;
        Tell(e);
    }

    Time m_zero; // when the controller's clock starts
    std::vector<Event> m_pending;
    int m_reason = NOTHING;
    int m_alarms = 0;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_REPORTING_H
