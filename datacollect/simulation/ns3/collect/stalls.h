// Connections on which nothing arrives for long although data wait: one timer for each.
#ifndef DATACOLLECT_COLLECT_STALLS_H
#define DATACOLLECT_COLLECT_STALLS_H

#include "collect/connections.h"
#include "collect/holdings.h"
#include "collect/reporting.h"
#include "collect/scenario.h"

#include <algorithm>

namespace collect
{

using namespace ns3;

class StallWatch
{
  public:
    StallWatch(const Scenario& scenario, const Holdings& holdings, Reports& reports)
        : m_holdings(holdings),
          m_reports(reports),
          m_stall_s(scenario.stall_s)
    {
    }

    // Set the timer of a connection that has data to move.
    void Watch(Connection* c)
    {
        if (m_stall_s > 0 && !c->stallTimer.IsPending() && !c->stalled && Waits(c))
        {
            c->waitsSince = Simulator::Now();
            c->stallTimer = c->Wake(Seconds(m_stall_s), int(STALL));
        }
    }

    // Something has moved.
    void Moved(Connection* c)
    {
        c->progress = Simulator::Now();
        if (c->stalled)
        {
            c->stalled = false;
            Watch(c);
        }
    }

    // The timer has rung.
    void Check(Connection* c)
    {
        if (!Waits(c))
        {
            return;
        }
        Time since = std::max(c->progress, c->waitsSince);
        Time left = since + Seconds(m_stall_s) - Simulator::Now();
        if (left.IsStrictlyPositive())
        {
            c->stallTimer = c->Wake(left, int(STALL));
            return;
        }
        c->stalled = true;
        m_reports.Tell(STALLED, c->id);
    }

  private:
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
        return m_holdings.Available(c->from, c->Handing().source, c->HandingAt()) > 0;
    }

    const Holdings& m_holdings;
    Reports& m_reports;
    double m_stall_s;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_STALLS_H
