// Ranges of bytes: what of a source has arrived somewhere, in whatever order it came.
#ifndef DATACOLLECT_COLLECT_RANGES_H
#define DATACOLLECT_COLLECT_RANGES_H

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace collect
{

// Part of a source's data.
struct Range
{
    int source;
    uint64_t offset;
    uint64_t bytes;
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

} // namespace collect

#endif // DATACOLLECT_COLLECT_RANGES_H
