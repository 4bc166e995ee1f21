"""Remedies of the command line: plans, pulls, examples, collections, keys."""

from __future__ import annotations

from remedies.trying import Example, call, in_folder, in_new_folder

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
PLAN = "plan p.toml -o s.json --force"
URL = "--url https://{host}/{source}/{path} -o out --force"
SAMPLES = (
    "src_region,src_tier,dst_region,throughput_received\n"
    "x,PREMIUM,y,8000000\nx,STANDARD,y,4000000\n"
)


LINE_OF_S = f"S https://s.example:7443 sha256:{'ab' * 32}"


EXAMPLES = [
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
        "--host is for scripts; --as {} is one for all hosts",
        in_folder(
            PLAN, "pulls p.toml s.json --as csv --manifest f.csv --host D", p_toml=P, f_csv=FILES
        ),
        in_folder(PLAN, "pulls p.toml s.json --as csv --manifest f.csv", p_toml=P, f_csv=FILES),
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
]

