"""Remedies of the command line: plans, pulls, examples, collections, keys."""

from __future__ import annotations

from unittest import mock

from remedies.trying import Example, call, in_folder, in_new_folder, until

from datacollect.measurement.sample_store import write_part
from datacollect.net.keys import PrivateKey

P = """
destination = "D"
[hosts.D]
[hosts.K]
[hosts.S]
backlog_bytes = 1_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 250_000
"""
FILES = "host,path,bytes\nS,a,1000000\n"
SAMPLED = "from,to,time_s,bandwidth_bytes_per_s\nS,D,1700000000,250000\nS,D,1700003600,200000\n"
TIMELESS = "from,to,bandwidth_bytes_per_s\nS,D,250000\nS,D,200000\n"
PLAN = "plan p.toml -o s.json --force"
URL = "--url https://{host}/{source}/{path} -o out --force"
SAMPLES = (
    "src_region,src_tier,dst_region,throughput_received\n"
    "x,PREMIUM,y,8000000\nx,STANDARD,y,4000000\n"
)


TESTS = "from,to,time_s,bandwidth_mbit_per_s\nS,D,1.7e9,80\n"
TO_D = "estimate t.csv --destination D"
OF_DAY = f"{TO_D} --daily 00:00 --timezone UTC"
LINE_OF_S = f"S https://s.example:7443 sha256:{'ab' * 32}"


NAMED = "a,to,time_s,bandwidth_mbit_per_s\nx,y,0,8\n"
COLLECTOR = PrivateKey(b"a" * 32).public
PRIVATE = "ed25519-private:" + "A" * 43 + "="
INIT = f"agent init --name S --relay-to x=h:1 --address s.example --collector {COLLECTOR}"


def measured(line, **files):
    """Run a command beside a folder of samples of the link a -> b."""
    sample = {"from": "a", "to": "b", "time_s": 1.7e9, "tool": "tcp", "ended": "done"}

    def run():
        with in_new_folder(**files) as folder:
            (folder / "samples").mkdir()
            write_part(
                folder / "samples", "one", [sample | {"bandwidth_bytes_per_s": 5.0, "streams": 1}]
            )
            return call(line)

    return run


def nameless(line):
    """Run a command on a host that has no name."""

    def run():
        with mock.patch("socket.getfqdn", return_value="localhost"):
            return in_folder(line)()

    return run


def with_a_shown_key(line):
    """Run a command with the public key that `keys` show."""

    def run():
        with in_new_folder():
            call("keys new c.key")
            return call(line.replace(COLLECTOR, call("keys show c.key").split()[0]))

    return run


FEED = "feed plan --rate 16Mbit/s"
OVER = "--rtt 50ms --bandwidth 20Mbit/s"


def fed(rows, line):
    """Plan a feed over a path from S to D of which something was measured."""
    sample = {"from": "S", "to": "D", "time_s": 1.7e9, "tool": "tcp", "ended": "done"}

    def run():
        with in_new_folder() as folder:
            (folder / "samples").mkdir()
            if rows:
                write_part(folder / "samples", "one", [sample | row for row in rows])
            return call(f"{FEED} --samples samples {line}")

    return run


RATE_MEASURED, TIME_MEASURED = {"bandwidth_bytes_per_s": 4e6}, {"rtt_s": 0.05}
BETWEEN = "--from S --to D"


def by_samples(line):
    """Run a command on a problem with samples of its links."""
    return in_folder(f"{line} --samples t.csv", p_toml=P, t_csv=SAMPLED)


EXAMPLES = [
    Example(
        '--loss must be a part >= 0 and < 1, got {}; 1e-5 is "0.001 %"',
        in_folder(f"{FEED} {OVER} --loss 1"),
        in_folder(f"{FEED} {OVER} --loss 0.001%"),
    ),
    Example(
        "--via {}: must begin with a relay's name, each relay once; write --via K1 --via K2=17ms",
        in_folder(f"{FEED} {OVER} --via =17ms"),
        in_folder(f"{FEED} {OVER} --via K1 --via K2=17ms"),
    ),
    Example(
        "--via: round trips to relays must sum to less than --rtt, got {} s of {} s; the last hop",
        in_folder(f"{FEED} {OVER} --via K=50ms"),
        in_folder(f"{FEED} {OVER} --via K=20ms"),
    ),
    Example(
        "{} is missing; give --rtt and --bandwidth, or --samples DIR --from S --to D",
        in_folder(FEED),
        in_folder(f"{FEED} {OVER}"),
    ),
    Example(
        "{} {}: cannot be combined with --samples, which says what was measured; leave one of "
        "them out",
        fed([RATE_MEASURED, TIME_MEASURED], f"{BETWEEN} --rtt 1s"),
        fed([RATE_MEASURED, TIME_MEASURED], BETWEEN),
    ),
    Example(
        "{}: holds no samples; measure first: datacollect measure cycle",
        fed([], BETWEEN),
        fed([RATE_MEASURED, TIME_MEASURED], BETWEEN),
    ),
    Example(
        "no {} was measured from {} to {}; measure it: datacollect measure {}",
        fed([RATE_MEASURED], BETWEEN),
        fed([RATE_MEASURED, TIME_MEASURED], BETWEEN),
    ),
    Example(
        "--seed is for scenarios, and none are drawn; add --samples DIR or --scenarios N",
        in_folder("plan p.toml --seed 5", p_toml=P),
        by_samples("plan p.toml --seed 5"),
    ),
    Example(
        "only `datacollect estimate` has these options, scenarios cannot use them: change the file",
        in_folder("plan p.toml --samples t.csv", p_toml=P, t_csv=TIMELESS),
        by_samples("plan p.toml"),
    ),
    Example(
        "give --samples DIR (samples, in Python), a folder of measurements",
        in_folder("plan p.toml --scenarios 5", p_toml=P),
        by_samples("plan p.toml --scenarios 5"),
    ),
    Example(
        "asks for a problem file; say with --destination where all data go",
        in_folder("estimate t.csv --backlog S='1 TB'", t_csv=TESTS),
        in_folder(f"{TO_D} --backlog S='1 TB'", t_csv=TESTS),
    ),
    Example(
        "with --destination a problem file is written: -o must end in .toml or .json, got {}",
        in_folder(f"{TO_D} -o p.csv", t_csv=TESTS),
        in_folder(f"{TO_D} -o p.json", t_csv=TESTS),
    ),
    Example(
        "must not lie before the start, {}, got {}; give a later instant",
        in_folder("plan p.toml --deadline 2001-01-01T00:00", p_toml=P),
        in_folder("plan p.toml --deadline 2097-01-01T00:00", p_toml=P),
    ),
    Example(
        "leave --times out, or write a CSV without --destination",
        in_folder(f"{TO_D} --times", t_csv=TESTS),
        in_folder("estimate t.csv --times", t_csv=TESTS),
    ),
    Example(
        "--timezone belongs to --daily and --start; leave --timezone out, or give one",
        in_folder(f"{TO_D} --timezone UTC", t_csv=TESTS),
        in_folder(f"{TO_D} --timezone UTC --start 2026-11-29T18:00", t_csv=TESTS),
    ),
    Example(
        "{} and --timezone go together: hours are shown by the clocks of a time zone",
        in_folder(f"{TO_D} --daily 00:00", t_csv=TESTS),
        in_folder(OF_DAY, t_csv=TESTS),
    ),
    Example(
        "--destination: no host is called {}; there are {}{}",
        in_folder("estimate t.csv --destination E", t_csv=TESTS),
        in_folder(TO_D, t_csv=TESTS),
    ),
    Example(
        'no host has anything to send; --backlog HOST="6 TB" says what one holds',
        in_folder(TO_D, t_csv=TESTS),
        in_folder(f"{TO_D} --backlog S='6 TB'", t_csv=TESTS),
    ),
    Example(
        "give --manifest FILE, a CSV",
        in_folder(PLAN, f"pulls p.toml s.json --as curl {URL}", p_toml=P),
        in_folder(
            PLAN, f"pulls p.toml s.json --as curl --manifest f.csv {URL}", p_toml=P, f_csv=FILES
        ),
    ),
    Example(
        'or name it in the problem: manifest = "FILE"',
        in_folder(PLAN, f"pulls p.toml s.json --as curl {URL}", p_toml=P),
        in_folder(
            PLAN,
            f"pulls p.toml s.json --as curl {URL}",
            p_toml=f'manifest = "f.csv"\n{P}',
            f_csv=FILES,
        ),
    ),
    Example(
        "--host is for scripts; --as {} writes one file for all hosts",
        in_folder(
            PLAN, "pulls p.toml s.json --as csv --manifest f.csv --host D", p_toml=P, f_csv=FILES
        ),
        in_folder(PLAN, "pulls p.toml s.json --as csv --manifest f.csv", p_toml=P, f_csv=FILES),
    ),
    Example(
        "name a SCHEDULE, or draw the problem's links with --map",
        in_folder("plot p.toml -o m.png", p_toml=P),
        in_folder("plot p.toml --map -o m.png", p_toml=P),
    ),
    Example(
        "-o must name a picture, .png, .svg or .pdf, with --map, got {}; the page has a map of its "
        "own",
        in_folder("plot p.toml --map -o m.html", p_toml=P),
        in_folder("plot p.toml --map -o m.png", p_toml=P),
    ),
    Example(
        "--force overwrites, -o DIR avoids it",
        in_folder("example figure1", "example figure1"),
        in_folder("example figure1", "example figure1 --force"),
    ),
    Example(
        "--force overwrites, -o DIR avoids it",
        in_folder("example figure1", "example figure1"),
        in_folder("example figure1", "example figure1 -o other"),
    ),
    Example(
        "write it like src_tier=PREMIUM",
        in_folder("estimate s.csv --only PREMIUM", s_csv=SAMPLES),
        in_folder("estimate s.csv --only src_tier=PREMIUM", s_csv=SAMPLES),
    ),
    Example(
        "`datacollect keys new FILE` writes one",
        in_folder("keys show k.key", k_key="nothing"),
        in_folder("keys new other.key", "keys show other.key", k_key="nothing"),
    ),
    Example(
        "`datacollect sweep EXPERIMENT.toml -o",
        in_folder("report ."),
        in_folder(
            "sweep e.toml -o out --workers 0",
            "report out",
            e_toml='scenario = "s.toml"\nengine = "fluid"\nseeds = { least = 1, most = 1 }\n'
            '[[axes]]\nname = "rate"\nvalues = [\n'
            '{ label = "a", set = { "topology.rate_bytes_per_s" = 4e5 } } ]\n',
            s_toml='topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }\n'
            'hosts = { destination = { at = "N1" }, sources = [{ name = "S", at = "N0" }] }\n'
            "backlog = { least_bytes = 1_000_000, most_bytes = 9_000_000 }\n",
        ),
    ),
    Example(
        "no such file; `datacollect collection new` makes one",
        in_folder(f"collection add {LINE_OF_S}"),
        in_folder("collection new", f"collection add {LINE_OF_S}"),
    ),
    Example(
        "with another address or fingerprint; --force replaces both",
        in_folder(
            "collection new",
            f"collection add {LINE_OF_S}",
            f"collection add {LINE_OF_S.replace('s.example', 't.example')}",
        ),
        in_folder(
            "collection new",
            f"collection add {LINE_OF_S}",
            f"collection add {LINE_OF_S.replace('s.example', 't.example')} --force",
        ),
    ),
    Example(
        "copy what `datacollect agent init` prints",
        in_folder("collection new", "collection add S s.example:7443"),
        in_folder("collection new", f"collection add {LINE_OF_S}"),
    ),
    Example(
        "-v and --quiet cannot be combined; give one of them",
        in_folder("plan p.toml -v --quiet", p_toml=P),
        in_folder("plan p.toml -v", p_toml=P),
    ),
    Example(
        "--only names {} twice; keep one",
        in_folder("estimate s.csv --only src_tier=PREMIUM --only src_tier=STANDARD", s_csv=SAMPLES),
        in_folder("estimate s.csv --only src_tier=STANDARD", s_csv=SAMPLES),
    ),
    Example(
        "--column names {} twice; keep one",
        in_folder("estimate s.csv --column a=from --column a=to", s_csv=NAMED),
        in_folder("estimate s.csv --column a=from", s_csv=NAMED),
    ),
    Example(
        "--column must be THEIRS=OURS, got {}; write it like src=from",
        in_folder("estimate s.csv --column a", s_csv=NAMED),
        in_folder("estimate s.csv --column a=from", s_csv=NAMED),
    ),
    Example(
        "--times needs samples whose times are seconds since 1970, got {}; leave --times out",
        in_folder("estimate s.csv --times", s_csv=NAMED.replace("a,", "from,")),
        in_folder("estimate s.csv", s_csv=NAMED.replace("a,", "from,")),
    ),
    Example(
        "choose one with --only {}={} (in Python: only)",
        in_folder("estimate s.csv", s_csv=SAMPLES),
        in_folder("estimate s.csv --only src_tier=STANDARD", s_csv=SAMPLES),
    ),
    Example(
        "say what it is with --column {}=NAME",
        in_folder("estimate s.csv", s_csv=NAMED),
        in_folder("estimate s.csv --column a=from", s_csv=NAMED),
    ),
    Example(
        "name the folder to write with -o, or the folder or URL to compare with --check",
        in_folder("event page e.toml"),
        until("e.toml", in_folder("event page e.toml -o out")),
    ),
    Example(
        "--host is missing: DIR has no name; say whose files they are",
        in_folder("manifest / -o m.csv"),
        in_folder("manifest . --host S -o m.csv"),
    ),
    Example(
        "give either -o FILE or --page PORT, got {}",
        measured("measure watch samples"),
        measured("measure watch samples -o w.html"),
    ),
    Example(
        "--hosts is for --page alone: only the live page asks agents; leave --hosts out, or give "
        "--page",
        measured("measure watch samples -o w.html --hosts h.toml", h_toml=""),
        measured("measure watch samples -o w.html"),
    ),
    Example(
        "--over names the axis {} twice; name one label of it",
        in_folder("report . --over a=1 --over a=2"),
        until("nor in a folder right below", in_folder("report . --over a=1")),
    ),
    Example(
        "--backlog names {} twice; keep one",
        measured("measure problem samples --backlog a=1 --backlog a=2 --destination b"),
        measured("measure problem samples --backlog a=1 --destination b"),
    ),
    Example(
        "--backlog must be HOST=BYTES, got {}; write it like S1=5000000",
        measured("measure problem samples --backlog a --destination b"),
        measured("measure problem samples --backlog a=5000000 --destination b"),
    ),
    Example(
        "--backlog: no host is called {}; there are {}{}",
        measured("measure problem samples --backlog c=1 --destination b"),
        measured("measure problem samples --backlog a=1 --destination b"),
    ),
    Example(
        "where do all data go? Give --hosts, a file with the destination, or --destination",
        measured("measure problem samples --backlog a=1"),
        measured("measure problem samples --backlog a=1 --destination b"),
    ),
    Example(
        "--iperf3 names {} twice; keep one",
        in_folder("measure hosts --iperf3 a=h:1 --iperf3 a=h:2 -o h.toml"),
        in_folder("measure hosts --iperf3 a=h:1 --iperf3 b=h:2 --destination D -o h.toml"),
    ),
    Example(
        "--iperf3 must be NAME=HOST:PORT, got {}; write it like S1=s1.example:5201",
        in_folder("measure hosts --iperf3 a -o h.toml"),
        until(
            "hosts must be at least two, got S1",
            in_folder("measure hosts --iperf3 S1=s1.example:5201 --destination S1 -o h.toml"),
        ),
    ),
    Example(
        "hosts must be at least two, got {}; name more by the URLs of their agents, or by --iperf3",
        in_folder("measure hosts --iperf3 D=d:1 -o h.toml"),
        in_folder("measure hosts --iperf3 D=d:1 --iperf3 S=s:1 -o h.toml"),
    ),
    Example(
        "{} names {} twice; keep one",
        in_folder("agent init --name S --relay-to a=h:1 --relay-to a=h:2 --collector " + COLLECTOR),
        in_folder(
            "agent init --name S --relay-to a=h:1 --address s.example --collector " + COLLECTOR
        ),
    ),
    Example(
        "{} must be NAME=HOST:PORT, got {}; as {}",
        in_folder("agent init --name S --relay-to a --collector " + COLLECTOR),
        in_folder(
            "agent init --name S --relay-to S2=s2.example:7443 --address s.example --collector "
            + COLLECTOR
        ),
    ),
    Example(
        "--force replaces a file, -o names another",
        in_folder(INIT, INIT.replace("x=h:1", "y=h:1")),
        in_folder(INIT, INIT.replace("x=h:1", "y=h:1") + " --force"),
    ),
    Example(
        "--force replaces a file, -o names another",
        in_folder(INIT, INIT.replace("x=h:1", "y=h:1")),
        in_folder(INIT, INIT.replace("x=h:1", "y=h:1") + " -o other.toml"),
    ),
    Example(
        "--address must be HOST or HOST:PORT, got {}; such as",
        in_folder(INIT.replace("s.example", "'https://s'")),
        in_folder(INIT),
    ),
    Example(
        "this host has no name of its own; give one with --address HOST",
        nameless(INIT.replace(" --address s.example", "")),
        nameless(INIT),
    ),
    Example(
        "`datacollect keys show FILE` prints it",
        in_folder(INIT.replace(COLLECTOR, "ed25519:abc")),
        with_a_shown_key(INIT),
    ),
    Example(
        "make another key with `datacollect keys new`, and write the other key's public half here",
        in_folder(INIT.replace(COLLECTOR, PRIVATE)),
        with_a_shown_key(INIT),
    ),
]
