// What is to be simulated, read from text: a word per line that says what follows. network_text.py
// writes it.
#ifndef DATACOLLECT_COLLECT_SCENARIO_H
#define DATACOLLECT_COLLECT_SCENARIO_H

#include "collect/routing.h"

#include "ns3/config.h"
#include "ns3/fatal-error.h"
#include "ns3/nstime.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/string.h"

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace collect
{

using namespace ns3;

// A one-way wire.
struct Wire
{
    uint32_t tail;
    uint32_t head;
    double rate; // bytes per second
    double delay_s;
    uint32_t queuePackets;
    int64_t back; // the opposite wire of its cable, or -1
};

// Another rate of a wire, from an instant of the controller's clock on.
struct RateChange
{
    size_t wire;
    double at_s;
    double rate; // bytes per second
};

// Traffic of others: an endless TCP transfer, or datagrams in exponential on and off times.
struct Traffic
{
    bool udp;
    uint32_t from;
    uint32_t to;
    double start_s;
    double rate; // of datagrams while on, bytes per second
    double on_s;
    double off_s;
};

// Its defaults and its seed are ns-3's own, and set as they are read.
struct Scenario
{
    explicit Scenario(const std::string& text)
    {
        std::istringstream in(text);
        std::string word;
        while (in >> word)
        {
            Read(word, in);
        }
    }

    uint32_t nNodes = 0;
    std::vector<Wire> wires;
    std::vector<RateChange> changes;           // in the order of time
    std::vector<std::vector<uint32_t>> wireTo; // by node and target; the network takes them
    std::vector<uint32_t> hostNode;            // by host
    std::vector<uint64_t> backlog;             // by host
    std::vector<Traffic> background;
    int destination = -1; // a host, or -1: nothing is ever complete
    Time zero;            // when the controller's clock starts
    double limit_s = 0;
    double stall_s = 0;
    double tick_s = 1;
    uint64_t relayBytes = 0; // most of others' data at a relay; 0: no bound
    uint32_t segment = 1448;
    uint64_t moveBytes = 1; // moves in a row are recorded as one up to this size

  private:
    void Read(const std::string& word, std::istringstream& in)
    {
        if (word == "default")
        {
            std::string name, value;
            in >> name >> value;
            Config::SetDefault(name, StringValue(value));
        }
        else if (word == "seed")
        {
            uint64_t run;
            in >> run;
            RngSeedManager::SetSeed(1);
            RngSeedManager::SetRun(run);
        }
        else if (word == "nodes")
        {
            in >> nNodes;
            wireTo.assign(nNodes, {});
        }
        else if (word == "wire")
        {
            Wire w;
            in >> w.tail >> w.head >> w.rate >> w.delay_s >> w.queuePackets >> w.back;
            wires.push_back(w);
        }
        else if (word == "change")
        {
            RateChange c;
            in >> c.wire >> c.at_s >> c.rate;
            changes.push_back(c);
        }
        else if (word == "target")
        {
            ReadTarget(in);
        }
        else if (word == "host") // its node, and its backlog
        {
            uint32_t node;
            uint64_t bytes;
            in >> node >> bytes;
            hostNode.push_back(node);
            backlog.push_back(bytes);
        }
        else if (word == "background")
        {
            Traffic t;
            in >> t.udp >> t.from >> t.to >> t.start_s >> t.rate >> t.on_s >> t.off_s;
            background.push_back(t);
        }
        else if (word == "run")
        {
            double zero_s;
            in >> destination >> zero_s >> limit_s >> stall_s >> tick_s >> relayBytes >> segment >>
                moveBytes;
            zero = Seconds(zero_s);
        }
        else
        {
            NS_FATAL_ERROR("scenario: unknown word " << word);
        }
    }

    // The wire of every node towards one of them.
    void ReadTarget(std::istringstream& in)
    {
        uint32_t target;
        int64_t wire;
        in >> target;
        for (std::vector<uint32_t>& table : wireTo)
        {
            in >> wire;
            if (table.size() <= target)
            {
                table.resize(target + 1, NO_WIRE);
            }
            table[target] = wire < 0 ? NO_WIRE : uint32_t(wire);
        }
    }
};

} // namespace collect

#endif // DATACOLLECT_COLLECT_SCENARIO_H
