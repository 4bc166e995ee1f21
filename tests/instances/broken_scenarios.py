"""The core paper's scenario broken in many ways: place, value, what the message says.

A value of None takes the key away.
"""

# What one value alone shows, or which tables there are: the JSON Schema refuses it too.
ALONE = [
    ("format", "datacollect-problem/1", "this is a problem; write a scenario"),
    ("topolgy", {}, "topolgy: unknown key; did you mean 'topology'?"),
    ("topology", None, "key topology is missing; add [topology]"),
    ("hosts", None, "key hosts is missing"),
    ("scale", 0, "scale must be a finite number > 0, got 0"),
    ("topology.kind", None, "topology: key kind is missing"),
    ("topology.kind", "dumbell", "did you mean 'dumbbell'?"),
    ("topology.seeds", 1, "topology.seeds: unknown key; did you mean 'seed'?"),
    ("topology.peering", {"rate_bytes_per_s": 0}, "peering.rate_bytes_per_s must be a finite"),
    ("hosts.sources.0.count", 0, "hosts.sources[0].count must be a whole number >= 1, got 0"),
    ("hosts.sources.0.backlog_bytes", -5, "hosts.sources[0].backlog_bytes must be"),
    ("background.tcp_probability", 1.5, "background.tcp_probability must be between 0 and 1"),
    ("background.flows", -1, "background.flows must be a whole number >= 0, got -1"),
    ("estimates.how", "mode", "estimates.how must be one of ewma, mean, last, median, quantile"),
    ("estimates.know_access", "yes", "estimates.know_access must be true or false"),
    ("routing.kind", "hotpotato", "did you mean 'hot-potato'?"),
    ("method.name", "coordinate", "did you mean 'coordinated'?"),
    ("method.slot_s", -1, "method.slot_s must be a finite number of seconds > 0, got -1"),
    ("run.time_limit_s", 0, "run.time_limit_s must be a finite number of seconds > 0, got 0"),
    ("run.warm_up_s", -1.0, "run.warm_up_s must be a finite number of seconds >= 0, got -1.0"),
    ("probe_scale", 0, "probe_scale must be a finite number > 0, got 0"),
    ("method.scaled_slot_s", 0, "method.scaled_slot_s must be a finite number of seconds > 0"),
    ("problem", "p.toml", "topology: a scenario with a problem has no topology"),
    ("truth_csv", "t.csv", "truth_csv needs a problem"),
    ("scale", "1", "scale must be a finite number > 0, got '1'; leave out the quotes"),
    ("name", "", "name must not be empty"),
    (
        "topology",
        {"kind": "line", "n_nodes": 2},
        "key rate_bytes_per_s is missing; add it to the line",
    ),
    ("topology", {"kind": "star", "n_nodes": 2}, "topology.n_nodes: unknown key"),
    (
        "topology.stub",
        {"queue_packets": 0},
        "topology.stub.queue_packets must be a whole number >= 1",
    ),
    (
        "topology",
        {"kind": "transit-stub", "stub_edge_probability": 1.5},
        "topology.stub_edge_probability must be > 0 and <= 1, got 1.5; write a share",
    ),
    (
        "topology",
        {"kind": "transit-stub", "nodes_per_stub": [1, 2, 3]},
        "topology.nodes_per_stub must be one value or a list of two, got [1, 2, 3]",
    ),
    (
        "topology",
        {"kind": "explicit", "wires": [{"a": "X", "b": "Y", "rate_bytes_per_s": [1e6, 0]}]},
        "topology.wires[0].rate_bytes_per_s[1] must be a finite number of bytes per second > 0",
    ),
    ("hosts.access", {"queue_packets": [5]}, "queue_packets must be one value or a list of two"),
    ("hosts.access", {"delay_s": -1}, "delay_s must be a finite number of seconds >= 0, got -1"),
    ("background.pairs", [{"from": "A0", "to": "B0", "start_s": -1}], "pairs[0].start_s must be"),
    ("background.split", "1:3", "background.split must be a list, got '1:3'"),
    (
        "estimates.repeats",
        5000,
        "estimates.repeats must be a whole number >= 1 and below 1001, got 5000; write a smaller",
    ),
    ("estimates.quantile", -0.1, "estimates.quantile must be between 0 and 1, got -0.1"),
    ("estimates.shared", [{}], "estimates.shared[0]: key wire is missing"),
    ("estimates.shared", ["B0-A0"], "estimates.shared[0] must be a table of keys and values"),
    (
        "estimates.shared",
        [{"wire": "B0-A0", "bandwidth_bytes_per_s": 0}],
        "estimates.shared[0].bandwidth_bytes_per_s must be a finite number of bytes per second > 0",
    ),
    (
        "estimates.shared",
        [{"wire": "B0-A0", "connections": 0}],
        "estimates.shared[0].connections must be a whole number >= 1",
    ),
    ("transport.preset", "ns2", "transport.preset must be one of ns-2, got 'ns2'"),
    ("method.first", "relays", "method.first must be one of direct, relay, got 'relays'"),
    ("run.control", "late", "run.control must be one of delayed, free, got 'late'"),
    ("method.replan_s", 0, "method.replan_s must be a finite number of seconds > 0, got 0"),
    ("run.time_limit_s", -5, "> 0, got -5; write a number above 0"),
    ("run.seed", 0.5, "run.seed must be a whole number >= 0, got 0.5"),
    ("run.udp_on_off", 1, "run.udp_on_off must be true or false, got 1"),
]

# What values say together.
TOGETHER = [
    ("hosts.destination.at", "A0", "hosts.destination.domain cannot be combined with at, got 'A'"),
    ("hosts.sources", [], "hosts.sources must not be empty"),
    ("backlog.most_bytes", None, "least_bytes and most_bytes belong together"),
    ("backlog.most_bytes", 5, "backlog.least_bytes must be <= most_bytes (5), got 25000000"),
    ("background.least_mean_s", 4.0, "must be <= most_mean_s (3), got 4.0"),
    ("background.pairs", [{"from": "A0", "to": "B0", "kind": "udp"}], "is needed there"),
    ("estimates.kind", "given", 'estimates.file is for kind = "given"'),
    (
        "estimates.shared",
        [{"wire": "B0-A0", "bandwidth_bytes_per_s": 1e6, "connections": 5}],
        "estimates.shared[0]: bandwidth_bytes_per_s and connections cannot be combined",
    ),
    (
        "method",
        {"name": "direct", "replan_s": 20},
        "method.name must be coordinated with replan_s, got 'direct'; or leave out method.replan_s",
    ),
    (
        "method",
        {"timing": "planned", "replan_s": 20},
        "method.timing must be asap with replan_s, got 'planned'",
    ),
    ("method", {"pace": True, "replan_s": 20}, "method.pace must be false with replan_s, got true"),
    ("method", {"slot_s": 2, "replan_s": 20}, "method.slot_s cannot be combined with replan_s"),
    (
        "method",
        {"scaled_slot_s": 2, "replan_s": 20},
        "method.scaled_slot_s cannot be combined with replan_s",
    ),
    ("method", {"time_slot_s": 2}, "method.time_slot_s needs at_a_time, how many sources send"),
    (
        "method",
        {"name": "direct", "time_slot_s": 2, "at_a_time": 1, "streams": 2},
        "method: time_slot_s cannot be combined with streams, total_streams and streams_as",
    ),
    ("method", {"slot_s": 2, "scaled_slot_s": 1}, "slot_s and scaled_slot_s cannot be combined"),
    ("method", {"slot_s": 2, "chunk_s": 1}, "slot_s and chunk_s cannot be combined"),
    (
        "method",
        {"total_streams": 9, "streams_as": "best-path"},
        "total_streams and streams_as cannot be combined; give one",
    ),
    (
        "method",
        {"name": "adaptive", "connections": 9, "connections_as": "coordinated"},
        "connections and connections_as cannot be combined; give one",
    ),
    ("method", {"name": "adaptive", "connections": 0}, "method.connections must be"),
    (
        "method",
        {"name": "direct", "as_many_times": 3},
        "method.as_many_times needs another method's plan, whose connections it multiplies",
    ),
    (
        "method",
        {"name": "adaptive", "connections": 9, "as_many_times": 3},
        "or in adaptive without connections, or leave it out",
    ),
    (
        "method",
        {"relays": "chains", "connections_as": "coordinated", "connections": 9, "lanes": 2},
        "connections and connections_as cannot be combined",
    ),
    (
        "method",
        {"relays": "chains", "timing": "planned"},
        "method.timing must be asap with relays = \"chains\", got 'planned'",
    ),
    (
        "method",
        {"relays": "chains", "lanes": 2},
        'method.lanes must be 1 with relays = "chains", got 2',
    ),
    (
        "method",
        {"relays": "chains", "slot_s": 2},
        'method.slot_s cannot be combined with relays = "chains", over which each route pulls its',
    ),
    (
        "method",
        {"relays": "chains", "replan_s": 9},
        'method.replan_s cannot be combined with relays = "chains"',
    ),
    (
        "method",
        {"name": "direct", "relays": "chains", "streams": 3},
        'method.streams must be 1 with relays = "chains", got 3',
    ),
    (
        "method",
        {"name": "direct", "relays": "chains", "order": ["S1"]},
        'method.order cannot be combined with relays = "chains"',
    ),
    (
        "method",
        {"piece_bytes": 65536},
        "method.piece_bytes is for what hands pieces out on the way: adaptive, chains, replan_s",
    ),
    ("estimates.kind", "unknown", 'method.relays must be "chains" with estimates.kind'),
    (
        "estimates",
        {"kind": "unknown", "perturbations": [{"wire": "B0-A0", "factor": 1.7}]},
        'estimates.perturbations cannot be combined with estimates.kind = "unknown": there are no',
    ),
]

# What goes with estimates.kind = "unknown", and does not.
WITHOUT_ESTIMATES = [
    (
        {"name": "adaptive", "relays": "chains", "connections_as": "coordinated"},
        'method.connections_as cannot be combined with estimates.kind = "unknown": another method',
    ),
    (
        {"name": "direct", "streams_as": "coordinated"},
        'method.streams_as cannot be combined with estimates.kind = "unknown"',
    ),
    ({"name": "direct", "pace": True}, "nobody knows when a transfer ends"),
    ({"name": "direct"}, None),
    ({"name": "adaptive", "relays": "chains", "connections": 16}, None),
    ({"name": "best-path", "relays": "chains"}, None),
]
