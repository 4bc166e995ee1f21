// Chains: relays that pass bytes on as they come, from one TCP connection to the next, and hold no
// more than the buffers of the two.
#ifndef DATACOLLECT_COLLECT_SPLICING_H
#define DATACOLLECT_COLLECT_SPLICING_H

#include "collect/connections.h"
#include "collect/moving.h"

namespace collect
{

using namespace ns3;

inline void
Splice::Accepted(Ptr<Socket> socket)
{
    size_t hop = 0;
    while (of->further[hop].get() != this)
    {
        ++hop;
    }
    of->mover->Accepted(of, hop + 1, socket);
}

inline void
Splice::Opened()
{
    of->mover->HopOpened(of, this);
}

inline void
Splice::Broken()
{
    of->Broken();
}

inline void
Splice::Readable(Ptr<Socket>)
{
    of->mover->Pass(this);
}

inline void
Splice::Sendable()
{
    of->mover->Pass(this);
}

} // namespace collect

#endif // DATACOLLECT_COLLECT_SPLICING_H
