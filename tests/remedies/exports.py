"""Remedies about scripts and tables of what is to be fetched, and their addresses."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
from conftest import need
from judges.fts_judge import transfers
from remedies.trying import Example, call, in_folder, in_new_folder, told

import datacollect as dc
from datacollect.exports.export import export
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import Files

URLS = ["https://{host}/{source}/{path}"]
MB = 10**6
P = """
destination = "D"
[hosts.D]
[hosts.S]
backlog_bytes = 1_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 250_000
"""
FILES = "host,path,bytes\nS,a,1000000\n"
WITH_MD5 = "host,path,bytes,md5\nS,a,1000000,d41d8cd98f00b204e9800998ecf8427e\n"
WEB = "--url https://{host}/{source}/{path}"


def addressed(kind, own=(), relayed=(), size=1_000_000):
    manifest = {"S": Files(("a",), np.array([size]), ("",))}
    hosts = {"S": {"backlog_bytes": 1_000_000}, "K": {}, "D": {}}
    pairs = [("S", "K"), ("K", "D")]
    links = [{"from": a, "to": b, "bandwidth_bytes_per_s": 1e6} for a, b in pairs]
    problem = dc.Problem.from_dict({"destination": "D", "hosts": hosts, "links": links})
    found = read_templates(own, relayed, problem.names, is_url=kind == "curl")
    return export(problem, dc.coordinated(problem), manifest, kind, found)


@cache
def planned(n_bytes, storage_bytes, direct, **options):
    """Plan what goes over K, at 10 MB/s for 10 000 s, then nothing until 100 000 s."""
    rate = [10.0 * MB, 0.0, 10.0 * MB]
    hosts = [
        dc.Host("S", n_bytes),
        dc.Host("K", storage_bytes=storage_bytes),
        dc.Host("D"),
    ]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate), dc.Link("S", "D", direct)]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 10_000.0, 100_000.0])
    return problem, dc.coordinated(problem, **options)


def fitted(kind="curl", deadline_s=10_000.0, storage_bytes=np.inf, direct=0.0, **options):
    """Export such a plan; without a choice of chunks where relays are to keep what they pass on."""
    asked = {key: options.pop(key) for key in ("keep_relayed",) if key in options}
    asked = asked or {"chunk_s": 10.0}
    problem, plan = planned(98_000 * MB, storage_bytes, direct, deadline_s=deadline_s, **asked)
    url = ["{host}:/{source}/{path}"] if kind in ("rsync", "rclone") else URLS
    templates = read_templates(url, [], problem.names, is_url=kind == "curl")
    files = {"S": Files(("a",), np.array([problem.total_bytes]), ("",))}
    return export(problem, plan, files, kind, templates, **options)


def full_window(times=1, **options):
    """Export 27 MB for a window of 30 s at 1 MB/s: their requests take half a second each."""
    rate = [1.0 * MB, 0.0, 1.0 * MB]
    hosts = [dc.Host("S", 27 * MB * times), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate), dc.Link("S", "D", 0.2 * MB)]
    periods_s = [0.0, 30.0 * times, 3000.0 * times]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=periods_s)
    files = {"S": Files(("a",), np.array([problem.total_bytes]), ("",))}
    templates = read_templates(URLS, [], problem.names, is_url=True)
    found = export(problem, dc.coordinated(problem, **options), files, "curl", templates)
    return " ".join(found.notes)


def with_margin(provoke, **options):
    """Plan with the margin that a message names."""

    def run():
        (named,) = re.findall(r"plan with --margin '([^']*)'", told(provoke))
        return full_window(margin_s=named, **options)

    return run


def as_told():
    """Run the command that is named, and write the scripts of its plan."""
    with in_new_folder(w_toml=WINDOW, f_csv="host,path,bytes\nS,a,270000000\n"):
        call("plan w.toml --deadline 600 -o s.json")
        (command,) = re.findall(
            r"plan so that scripts keep it: datacollect (.*)", told(lambda: call(SCRIPTS))
        )
        call(command)
        return call(SCRIPTS)


WINDOW = """
destination = "D"
periods_s = [0, 300, 30000]
[hosts]
S = {backlog_bytes = 270_000_000}
K = {}
D = {}
[[links]]
from = "S"
to = "K"
bandwidth_bytes_per_s = [1e6, 0, 1e6]
[[links]]
from = "K"
to = "D"
bandwidth_bytes_per_s = [1e6, 0, 1e6]
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 0.2e6
"""
# A tenth of it: no margin is short enough for its deadline, and long enough for requests.
SMALL = {
    "w_toml": WINDOW.replace("[0, 300, 30000]", "[0, 30, 3000]").replace("270_", "27_"),
    "f_csv": "host,path,bytes\nS,a,27000000\n",
}
SCRIPTS = f"pulls w.toml s.json --as curl --manifest f.csv -o out {WEB}"


def too_large():
    return fitted(piece_bytes=1960 * MB)


def in_small_pieces():
    (size,) = re.findall(r"with --piece-bytes (\d+) they keep it", told(too_large))
    return fitted(piece_bytes=int(size))


def pulls(options, files=FILES):
    return in_folder(
        "plan p.toml -o s.json", f"pulls p.toml s.json {options}", p_toml=P, f_csv=files
    )


def jobs(more="", url=WEB, files=FILES):
    return pulls(f"--as fts --manifest f.csv -o out {url} {more}", files)


def beside_much(**options):
    """Export what goes over K, and much beside it, which is many pieces where K has small ones."""
    rate = [10.0 * MB, 0.0, 10.0 * MB]
    backlogs = {"S": 98_000 * MB, "T": 5_000_000 * MB, "K": 0, "J": 0, "D": 0}
    hosts = [dc.Host(name, n_bytes) for name, n_bytes in backlogs.items()]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate)]
    links += [dc.Link("T", "J", 900.0 * MB), dc.Link("J", "D", 900.0 * MB)]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 10_000.0, 100_000.0])
    plan = dc.coordinated(problem, deadline_s=10_000.0, chunk_s=10.0)
    files = {
        name: Files(("a",), np.array([n_bytes]), ("",))
        for name, n_bytes in backlogs.items()
        if n_bytes
    }
    templates = read_templates(URLS, [], problem.names, is_url=True)
    return export(problem, plan, files, "curl", templates, **options)


def submitted(how):
    """Have FTS's rules judge what a program sends of a job, which names a checksum."""

    def run():
        with in_new_folder(p_toml=P, f_csv=WITH_MD5) as folder:
            call("plan p.toml -o s.json")
            call(f"pulls p.toml s.json --as fts --manifest f.csv -o out {WEB}")
            (job,) = (folder / "out").glob("*.json")
            (one,) = transfers(json.loads(how(job)))
        assert (one.checksum, one.mode) == ("MD5:d41d8cd98f00b204e9800998ecf8427e", "both")

    return run


def by_the_client(job):
    """Return what fts-rest-transfer-submit --checksum-mode both has FTS do: to compare at both."""
    tree = json.loads(job.read_text())
    tree["params"]["verify_checksum"] = True
    return json.dumps(tree)


class FtsHandler(BaseHTTPRequestHandler):
    """Takes jobs, and says nothing of them."""

    def do_POST(self):
        self.server.came.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def by_curl(job):
    """Return what FTS's REST interface is sent; here it listens, without TLS."""
    need("curl")
    with HTTPServer(("127.0.0.1", 0), FtsHandler) as server:
        server.came = []
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/jobs"
        command = ["curl", "--silent", "--fail", "--noproxy", "*", "--data-binary", f"@{job}", url]
        subprocess.run(command, check=True, timeout=300)
        thread.join()
    return server.came[-1]


EXAMPLES = [
    Example(
        "list all its files, and set backlog_bytes to their sum",
        lambda: addressed("curl", URLS, size=999),
        lambda: addressed("curl", URLS),
    ),
    Example(
        "give --url '{}=TEMPLATE', such as",
        lambda: addressed("curl", ["K=https://k/{source}/{path}"]),
        lambda: addressed("curl", ["K=https://k/{source}/{path}", "S=https://s/{path}"]),
    ),
    Example(
        "give --relay-url '{}=TEMPLATE' with {source} in it",
        lambda: addressed("curl", ["https://{host}/{path}"]),
        lambda: addressed("curl", ["https://{host}/{path}"], ["K=https://k/{source}/{path}"]),
    ),
    Example(
        "give it another one: --url '{}={}'",
        lambda: addressed(
            "rclone", ["{host}:{path}", "S=zürich:{path}"], ["{host}:{source}/{path}"]
        ),
        lambda: addressed("rclone", ["{host}:{path}", "S=zrh:{path}"], ["{host}:{source}/{path}"]),
    ),
    Example("with --piece-bytes {} they keep it", too_large, in_small_pieces),
    Example("they keep it, or leave the option out", too_large, fitted),
    Example(
        "forwards whole files: take --as curl",
        lambda: fitted("rsync"),
        lambda: fitted("curl"),
    ),
    Example(
        "or --as rclone, which fetch pieces",
        lambda: fitted("rsync"),
        lambda: fitted("rclone"),
    ),
    Example(
        "plan with --keep-relayed, which lets no more pass than each relay can keep",
        lambda: fitted(deadline_s=None, storage_bytes=50e9, direct=1e6),
        lambda: fitted(deadline_s=None, storage_bytes=50e9, direct=1e6, keep_relayed=True),
    ),
    Example(
        "nothing deletes at {} what has been forwarded: {} needs {} there, its storage_bytes is",
        lambda: fitted(deadline_s=None, storage_bytes=50e9, direct=1e6),
        lambda: fitted(deadline_s=None, storage_bytes=200e9, direct=1e6),
    ),
    Example(
        "plan with --margin '{}', which ends so much earlier, or allow more time",
        lambda: full_window(10, deadline_s=600.0),
        with_margin(lambda: full_window(10, deadline_s=600.0), times=10, deadline_s=600.0),
    ),
    Example(
        "plan with --margin '{}' if that is too late.",
        full_window,
        with_margin(full_window),
    ),
    Example(
        "plan so that scripts keep it: {command}",
        in_folder(
            "plan w.toml --deadline 600 -o s.json",
            SCRIPTS,
            w_toml=WINDOW,
            f_csv="host,path,bytes\nS,a,270000000\n",
        ),
        as_told,
    ),
    Example(
        "no plan was found whose scripts keep it; allow more time",
        in_folder("plan w.toml --deadline 60 -o s.json", SCRIPTS, **SMALL),
        in_folder("plan w.toml --deadline 200 -o s.json", SCRIPTS, **SMALL),
    ),
    Example(
        "is for --as {}; {}",
        pulls("--as csv --manifest f.csv --checksum md5"),
        jobs("--checksum md5", files=WITH_MD5),
    ),
    Example(
        "is for --as; say which kind of file to write",
        pulls("--manifest f.csv"),
        pulls("--manifest f.csv --as csv"),
    ),
    Example(
        "the manifest has this checksum for no file; add a column {} to it",
        jobs("--checksum md5"),
        jobs("--checksum md5", files=WITH_MD5),
    ),
    Example("add a column {} to it, or leave the option out", jobs("--checksum md5"), jobs()),
    Example(
        "FTS cannot take these files: {}{}; rename them",
        jobs(url="--url root://{host}//{source}/{path}", files=FILES.replace(",a,", ",a?b,")),
        jobs(url="--url root://{host}//{source}/{path}"),
    ),
    Example(
        "or have them served by https:// or davs://, which encode names: --url 'HOST=davs://…'",
        jobs(url="--url root://{host}//{source}/{path}", files=FILES.replace(",a,", ",a?b,")),
        jobs(url="--url davs://{host}//{source}/{path}", files=FILES.replace(",a,", ",a?b,")),
    ),
    Example(
        "in an address that is written into files may grant access; keep it in {}",
        pulls(
            "--as curl --manifest f.csv -o out --url 'https://{host}/{source}/{path}?X-Amz-Signature=1'"
        ),
        pulls(f"--as curl --manifest f.csv -o out {WEB}"),
    ),
    Example(
        "scripts can check data only over {}, got {}; give such an address",
        pulls("--as curl --manifest f.csv -o out --url ftp://{host}/{source}/{path}"),
        pulls(f"--as curl --manifest f.csv -o out {WEB}"),
    ),
    Example(
        "give such an address, or use rclone",
        pulls("--as curl --manifest f.csv -o out --url ftp://{host}/{source}/{path}"),
        pulls("--as rclone --manifest f.csv -o out --url {host}:{source}/{path}"),
    ),
    Example(
        "no exported script has worked in this folder; --host HOST says whose folder it is",
        in_folder("manifest . -o f.csv --host S", "progress . --manifest f.csv --at 5", p_toml=P),
        in_folder(
            "manifest . -o f.csv --host S", "progress . --manifest f.csv --at 5 --host D", p_toml=P
        ),
    ),
    Example("submit each job as it is: curl --data-binary @JOB", jobs(), submitted(by_curl)),
    Example(
        "fts-rest-transfer-submit compares checksums only with --checksum-mode both",
        jobs(files=WITH_MD5),
        submitted(by_the_client),
    ),
    Example(
        "leave --piece-bytes out: then they keep it",
        lambda: beside_much(piece_bytes=1960 * MB),
        beside_much,
    ),
]
