// Packets that only pass a node go from one device to the next, without its network layer.
#ifndef DATACOLLECT_COLLECT_FORWARDING_H
#define DATACOLLECT_COLLECT_FORWARDING_H

#include "collect/routing.h"

#include "ns3/ipv4-l3-protocol.h"
#include "ns3/net-device.h"
#include "ns3/packet.h"

#include <cstdint>
#include <vector>

namespace collect
{

using namespace ns3;

// Where a node's packets go. ns-3's own way through the network layer sends the same packet into the same
// queue at the same instant, and makes a run beside background take a third longer.
//
// What it does besides has no effect here: all wires carry packets of one size, so that none is cut on
// the way; routes that go round in a circle are refused before (network_text.py), so that none grows
// too old.
struct Forwarder
{
    bool Receive(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol, const Address& from)
    {
        Ptr<NetDevice> next = Next(packet);
        if (next)
        {
            // Each packet that arrives is the receiver's alone: the channel has made a copy for it.
            return next->Send(ConstCast<Packet>(packet), next->GetBroadcast(), protocol);
        }
        ipv4->Receive(device, packet, protocol, from, device->GetAddress(), NetDevice::PACKET_HOST);
        return true;
    }

    // The device towards its destination; none where it has arrived, or where no way is known.
    Ptr<NetDevice> Next(Ptr<const Packet> packet) const
    {
        uint8_t head[20]; // of IPv4; the destination's address ends it
        packet->CopyData(head, sizeof head);
        uint32_t address = uint32_t(head[16]) << 24 | head[17] << 16 | head[18] << 8 | head[19];
        uint32_t target = address - FIRST_ADDRESS;
        const std::vector<uint32_t>& wireTo = routing->wireTo;
        uint32_t wire = target < wireTo.size() && target != routing->node ? wireTo[target] : NO_WIRE;
        return wire == NO_WIRE ? nullptr : (*routing->routeOfWire)[wire]->GetOutputDevice();
    }

    Ptr<TableRouting> routing;
    Ptr<Ipv4L3Protocol> ipv4;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_FORWARDING_H
