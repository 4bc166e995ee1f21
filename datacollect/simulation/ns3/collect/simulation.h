// A collection in ns-3: nodes, wires, background traffic, and connections that move byte ranges.
//
// This moves bytes and reports what happened; it decides nothing. Who drives it alternates
// between Simulation::Run, which returns when there is something to report, and Open, Send, Close
// and WakeAt, which take effect at the instant reported. Nothing calls back into the driver, so no
// exception crosses ns-3 and no callback can be collected as garbage.
//
// The same headers serve two drivers: worker.py compiles them with cppyy, a C++ program includes
// them. They need ns-3.44 (core, network, internet, point-to-point, traffic-control modules), and
// the folder above this one among those that the compiler searches.
#ifndef DATACOLLECT_COLLECT_SIMULATION_H
#define DATACOLLECT_COLLECT_SIMULATION_H

#include "collect/background.h"
#include "collect/building.h"
#include "collect/connections.h"
#include "collect/holdings.h"
#include "collect/moving.h"
#include "collect/recording.h"
#include "collect/reporting.h"
#include "collect/scenario.h"
#include "collect/splicing.h"
#include "collect/stalls.h"

#include "ns3/config.h"
#include "ns3/ipv4-address-generator.h"
#include "ns3/mac48-address.h"
#include "ns3/names.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace collect
{

using namespace ns3;

// What earlier simulations in this process have left behind is forgotten.
struct CleanSlate
{
    CleanSlate()
    {
        Config::Reset();
        Ipv4AddressGenerator::Reset();
        Mac48Address::ResetAllocationIndex();
        Names::Clear();
    }
};

class Simulation
{
  public:
    explicit Simulation(const std::string& scenario)
        : m_scenario(scenario),
          m_network(m_scenario),
          m_background(m_scenario, m_network),
          m_holdings(m_scenario),
          m_reports(m_scenario.zero),
          m_connections(m_scenario, m_network, m_reports),
          m_stalls(m_scenario, m_holdings, m_reports),
          m_records(m_scenario, m_network, m_background, m_reports),
          m_mover(m_scenario, m_connections, m_holdings, m_stalls, m_reports, m_records),
          m_tick(Seconds(std::min(m_scenario.tick_s, m_network.wrap_s)))
    {
    }

    ~Simulation()
    {
        Simulator::Destroy(); // sockets must be gone before what they call back
    }

    // Begin to measure; the controller's clock is at 0. Runs the background up to there.
    void WarmUp()
    {
        Simulator::Stop(m_scenario.zero);
        Simulator::Run();
        m_records.Begin();
        m_reports.StopIn(Seconds(m_scenario.limit_s), LIMIT);
        m_reports.StopIn(m_tick, TICK);
    }

    // Simulate on, until something is to be reported; return a Reason.
    int Run()
    {
        int reason = m_reports.Run();
        if (reason == TICK)
        {
            m_network.Count();
            m_reports.StopIn(m_tick, TICK);
        }
        return reason;
    }

    // Let the background go on once the collection is over; Run returns COOLED.
    void CoolDown(double cool_down_s) { m_reports.StopIn(Seconds(cool_down_s), COOLED); }

    // What happened, in order. Decisions may add to it: ask until nothing comes.
    std::vector<Event> TakeEvents() { return m_reports.Take(); }

    // Two hosts are a connection's ends, more a chain's.
    void Open(int id, const std::vector<int>& hosts, uint64_t window, double pace)
    {
        m_mover.Open(id, hosts, window, pace);
    }

    void Send(int id, int source, uint64_t offset, uint64_t bytes)
    {
        m_mover.Send(id, source, offset, bytes);
    }

    void Close(int id, bool drop) { m_mover.Close(id, drop); }

    void WakeAt(double time_s, int64_t tag) { m_reports.WakeAt(time_s, tag); }

    // How many bytes have arrived over a connection since it was opened.
    uint64_t Arrived(int id) const { return m_connections.At(id)->arrived; }

    double Now() const { return m_reports.Now(); }
    bool Complete() const { return m_records.Complete(); }
    uint64_t Collected() const { return m_holdings.Collected(); }
    uint64_t Events() const { return Simulator::GetEventCount(); }

    // True if nothing is queued, opening or awaited: only a decision can move anything now.
    bool Idle() const { return !m_reports.AnyAlarm() && m_connections.Idle(); }

    // What was measured, as text.
    std::string Results() { return m_records.Text(m_connections); }

  private:
    CleanSlate m_cleanSlate;
    Scenario m_scenario;
    Network m_network;
    Background m_background;
    Holdings m_holdings;
    Reports m_reports;
    Connections m_connections;
    StallWatch m_stalls;
    Records m_records;
    Mover m_mover;
    Time m_tick;
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_SIMULATION_H
