// What each host has of each source, and what of it all is at the destination.
#ifndef DATACOLLECT_COLLECT_HOLDINGS_H
#define DATACOLLECT_COLLECT_HOLDINGS_H

#include "collect/ranges.h"
#include "collect/scenario.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace collect
{

// Of bytes that arrived: how many the receiver did not have yet, and how many the sender had not
// got rid of before.
struct Passed
{
    uint64_t stored;
    uint64_t freed;
};

class Holdings
{
  public:
    explicit Holdings(const Scenario& scenario)
        : m_backlog(scenario.backlog),
          m_destination(scenario.destination),
          m_relayBytes(scenario.relayBytes),
          m_here(scenario.backlog.size()),
          m_gone(scenario.backlog.size()),
          m_others(scenario.backlog.size(), 0)
    {
        for (size_t h = 0; h < m_backlog.size(); ++h)
        {
            m_missing += int(h) == m_destination ? 0 : m_backlog[h];
        }
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

    bool Bounded() const { return m_relayBytes > 0; }

    // How many bytes of the source the host has room for.
    uint64_t Room(int host, int source) const
    {
        if (!Bounded() || host == m_destination || host == source)
        {
            return UINT64_MAX;
        }
        return m_relayBytes - std::min(m_others[host], m_relayBytes);
    }

    // Note that n bytes of the source from `at` on have arrived.
    Passed Pass(int from, int to, int source, uint64_t at, uint64_t n)
    {
        uint64_t stored = to == source ? 0 : m_here[to][source].Add(at, at + n);
        uint64_t freed = m_gone[from][source].Add(at, at + n);
        m_others[to] += to == m_destination ? 0 : stored;
        m_others[from] -= from == source ? 0 : std::min(freed, m_others[from]);
        if (to == m_destination)
        {
            m_collected += stored;
            m_missing -= stored;
        }
        return {stored, freed};
    }

    uint64_t Collected() const { return m_collected; }
    bool Complete() const { return m_missing == 0 && m_destination >= 0; }

  private:
    const std::vector<uint64_t>& m_backlog;
    int m_destination;
    uint64_t m_relayBytes;
    std::vector<std::map<int, Ranges>> m_here; // of each host, by source: what ever arrived
    std::vector<std::map<int, Ranges>> m_gone; // the same: what arrived at a next host
    std::vector<uint64_t> m_others;            // others' bytes that a host holds
    uint64_t m_missing = 0;
    uint64_t m_collected = 0;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_HOLDINGS_H
