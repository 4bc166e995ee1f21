// What a run measures: moves of bytes, and counters of all that is shared, before and after.
#ifndef DATACOLLECT_COLLECT_RECORDING_H
#define DATACOLLECT_COLLECT_RECORDING_H

#include "collect/background.h"
#include "collect/building.h"
#include "collect/connections.h"
#include "collect/holdings.h"
#include "collect/reporting.h"
#include "collect/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace collect
{

using namespace ns3;

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

// Counters of everything shared, at one instant.
struct Snapshot
{
    double time_s = NAN;
    std::vector<uint64_t> flowBytes;
    std::vector<uint64_t> wireBytes;
    std::vector<uint64_t> wireDrops;
};

class Records
{
  public:
    Records(const Scenario& scenario,
            Network& network,
            const Background& background,
            const Reports& reports)
        : m_scenario(scenario),
          m_network(network),
          m_background(background),
          m_reports(reports)
    {
    }

    // The controller's clock starts.
    void Begin() { m_start = Take(); }

    // The collection is complete.
    void Finish()
    {
        m_complete = true;
        m_finish = Take();
    }

    bool Complete() const { return m_complete; }

    // Moves in a row become one, up to a size: a curve needs no point per segment.
    void Moved(Connection* c, int source, uint64_t n, Passed passed)
    {
        double now = m_reports.Now();
        double before = m_reports.Since(c->progress);
        bool steady = c->arrived > n && now - before < 1.0;
        if (c->move != SIZE_MAX && steady)
        {
            Move& m = m_moves[c->move];
            if (m.source == source && m.bytes < m_scenario.moveBytes)
            {
                m.finish_s = now;
                m.bytes += n;
                m.stored += passed.stored;
                m.freed += passed.freed;
                return;
            }
        }
        c->move = m_moves.size();
        m_moves.push_back(
            {c->id, source, steady ? before : now, now, n, passed.stored, passed.freed});
    }

    // All of it, a line each; results.py reads it.
    std::string Text(const Connections& connections)
    {
        Snapshot end = m_complete ? m_finish : Take();
        std::ostringstream text;
        text.precision(17);
        for (const Move& m : m_moves)
        {
            text << "move " << m.connection << ' ' << m.source << ' ' << m.start_s << ' '
                 << m.finish_s << ' ' << m.bytes << ' ' << m.stored << ' ' << m.freed << '\n';
        }
        for (const auto& entry : connections.All())
        {
            uint64_t again = entry.second->retransmissions;
            for (const auto& splice : entry.second->further)
            {
                again += splice->retransmissions;
            }
            text << "retransmissions " << entry.first << ' ' << again << '\n';
        }
        text << "drawn_syn_timeouts " << connections.DrawnTimeouts() << '\n';
        Wires(text, end);
        for (size_t f = 0; f < m_background.flows.size(); ++f)
        {
            FlowOf(text, f, end);
        }
        return text.str();
    }

  private:
    Snapshot Take()
    {
        m_network.Count();
        Snapshot s;
        s.time_s = m_reports.Now();
        for (const auto& f : m_background.flows)
        {
            s.flowBytes.push_back(f->received);
        }
        for (size_t w = 0; w < m_scenario.wires.size(); ++w)
        {
            s.wireBytes.push_back(m_network.SentBytes(w));
            s.wireDrops.push_back(m_network.DroppedPackets(w));
        }
        return s;
    }

    void Wires(std::ostringstream& text, const Snapshot& end) const
    {
        double lasted = end.time_s - m_start.time_s;
        for (size_t w = 0; w < m_scenario.wires.size(); ++w)
        {
            double capacity = m_scenario.wires[w].rate * lasted;
            uint64_t bytes = end.wireBytes[w] - m_start.wireBytes[w];
            text << "wire " << w << ' ' << (capacity > 0 ? bytes / capacity : 0.0) << ' '
                 << end.wireDrops[w] - m_start.wireDrops[w] << '\n';
        }
    }

    void FlowOf(std::ostringstream& text, size_t f, const Snapshot& end)
    {
        double zero_s = m_scenario.zero.GetSeconds();
        Goodput(text, f, "before", -zero_s, 0, m_start.time_s, m_start);
        Goodput(text, f, "during", m_start.time_s, m_start.flowBytes[f], end.time_s, end);
        if (m_complete)
        {
            Goodput(text, f, "after", end.time_s, end.flowBytes[f], m_reports.Now(), Take());
        }
        if (m_background.flows[f]->broken)
        {
            text << "broken " << f << '\n';
        }
    }

    void Goodput(std::ostringstream& text,
                 size_t f,
                 const char* phase,
                 double start_s,
                 uint64_t before,
                 double end_s,
                 const Snapshot& end) const
    {
        double begun_s = m_background.flows[f]->is.start_s - m_scenario.zero.GetSeconds();
        double start = std::max(start_s, begun_s);
        if (end_s > start)
        {
            text << "flow " << f << ' ' << phase << ' '
                 << double(end.flowBytes[f] - before) / (end_s - start) << '\n';
        }
    }

    const Scenario& m_scenario;
    Network& m_network;
    const Background& m_background;
    const Reports& m_reports;
    std::vector<Move> m_moves;
    bool m_complete = false;
    Snapshot m_start;
    Snapshot m_finish;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_RECORDING_H
