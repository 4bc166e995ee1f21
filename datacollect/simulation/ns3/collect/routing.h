// Addresses and routes: an address is a node's number, routes are tables that others computed.
#ifndef DATACOLLECT_COLLECT_ROUTING_H
#define DATACOLLECT_COLLECT_ROUTING_H

#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-helper.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4.h"

#include <cstdint>
#include <vector>

namespace collect
{

using namespace ns3;

const uint32_t FIRST_ADDRESS = 0x0A000001; // 10.0.0.1 is node 0
const uint32_t NO_WIRE = 0xffffffff;

inline Ipv4Address
AddressOf(uint32_t node)
{
    return Ipv4Address(FIRST_ADDRESS + node);
}

// Routes computed elsewhere: a node's table holds the wire towards every node, by its number.
// Ipv4GlobalRouting scans its routes at every hop and takes twice the time.
class TableRouting : public Ipv4RoutingProtocol
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("collect::TableRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override { return GetTypeId(); }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header& header,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        Ptr<Ipv4Route> route = Find(header.GetDestination());
        error = route ? Socket::ERROR_NOTERROR : Socket::ERROR_NOROUTETOHOST;
        return route;
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    const UnicastForwardCallback& forward,
                    const MulticastForwardCallback&,
                    const LocalDeliverCallback& deliver,
                    const ErrorCallback& fail) override
    {
        if (header.GetDestination().Get() - FIRST_ADDRESS == node)
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
            return true;
        }
        Ptr<Ipv4Route> route = Find(header.GetDestination());
        if (!route)
        {
            fail(packet, header, Socket::ERROR_NOROUTETOHOST);
            return false;
        }
        forward(route, packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

    uint32_t node = 0;
    const std::vector<Ptr<Ipv4Route>>* routeOfWire = nullptr;
    std::vector<uint32_t> wireTo; // by target node

  protected:
    void DoDispose() override
    {
        m_ipv4 = nullptr;
        Ipv4RoutingProtocol::DoDispose();
    }

  private:
    Ptr<Ipv4Route> Find(Ipv4Address destination) const
    {
        uint32_t target = destination.Get() - FIRST_ADDRESS;
        uint32_t wire = target < wireTo.size() ? wireTo[target] : NO_WIRE;
        return wire == NO_WIRE ? nullptr : (*routeOfWire)[wire];
    }

    Ptr<Ipv4> m_ipv4;
};

class TableRoutingHelper : public Ipv4RoutingHelper
{
  public:
    TableRoutingHelper* Copy() const override { return new TableRoutingHelper(*this); }
    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<TableRouting>();
    }
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_ROUTING_H
