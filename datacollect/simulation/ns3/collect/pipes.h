// Pairs of sockets, and what they call back.
#ifndef DATACOLLECT_COLLECT_PIPES_H
#define DATACOLLECT_COLLECT_PIPES_H

#include "ns3/fatal-error.h"
#include "ns3/inet-socket-address.h"
#include "ns3/node.h"
#include "ns3/simulator.h"
#include "ns3/tcp-socket-base.h"
#include "ns3/tcp-socket-factory.h"

#include <cstdint>
#include <functional>

namespace collect
{

using namespace ns3;

// Why a Pipe is woken.
enum Why
{
    START,
    DATAGRAM,
    PACE,
    STALL
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

    EventId Wake(Time after, int why)
    {
        return Simulator::Schedule(after, &Pipe::Woken, this, why);
    }

    Ptr<Socket> out;
    Ptr<Socket> in;
    Ptr<Socket> listener;
    InetSocketAddress target{uint16_t(0)};
    uint64_t retransmissions = 0;
    bool connecting = false;
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

} // namespace collect

#endif // DATACOLLECT_COLLECT_PIPES_H
