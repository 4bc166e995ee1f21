"""Messages of scripts: what cannot get better, how far they are, what they would do, and why."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress
from importlib.resources import files as package_files

import pytest
import trustme
from conftest import need
from instances.exported_scripts import PARTS, Scripts, data_of
from instances.odd_server import Answer, odd_server, part_of

import datacollect as dc
from datacollect.exports.export import export
from datacollect.exports.templates import read_templates
from datacollect.problem.manifest import read_manifest

# RFC 6761: a name that nobody has.
NOBODY = {"curl": "http://nobody.invalid", "aria2": "http://nobody.invalid"}
NOBODY |= {"rclone": "nobody:data", "rsync": "rsync://nobody.invalid/data"}
WORDS = {
    "curl": r"exit code 6 of curl: curl: \(6\) Could not resolve host: nobody\.invalid",
    "aria2": r"exit code 19 of aria2c: .*Name resolution for nobody\.invalid failed",
    "rclone": r"exit code 1 of rclone: .*didn't find section in config file",
    "rsync": r"exit code \d+ of rsync: rsync: .*nobody\.invalid",
}

ADVICE = ": is its script running, and does its server show new files at once"
ADVICE += " (rclone: --dir-cache-time 0s)?"
BESIDE = "beside its bytes (start-up, latency); fewer and larger pieces cost less of it"


def honest(request):
    return part_of(data_of(request.path[1:]), request, ETag='"1"')


@pytest.mark.parametrize("kind", list(PARTS))
def test_a_name_that_nobody_has_ends_a_lane_at_its_first_try(tmp_path, kind):
    """With the tool's own words; a try more would cost ten minutes here."""
    need(kind)
    scripts = Scripts(tmp_path, kind, names=("f", "g", "h"), n_ranges=1)
    scripts.write(NOBODY[kind])
    code, said = scripts.start(DATACOLLECT_EVERY_S="600", DATACOLLECT_TRIES="9")
    assert code == 1
    assert re.search(f"^D: gave up after 1 tries: .*f: {WORDS[kind]}", said, re.MULTILINE), said
    for name in "gh":
        assert re.search(f"^D: not asked for, .*{name}$", said, re.MULTILINE), said
    assert "it is tried again" not in said


# What tools say, then whether another try is of use, and whether anybody has answered.
SAID = [
    ("ssh: Could not resolve hostname h: Name or service not known", "never", "silent"),
    ("ssh: Could not resolve hostname h: Temporary failure in name resolution", "", "silent"),
    ("me@h: Permission denied (publickey,password).", "never", "silent"),
    ("Host key verification failed.", "never", "silent"),
    ("@ERROR: auth failed on module m", "never", "silent"),
    ("@ERROR: Unknown module 'm'", "never", "silent"),
    ("@ERROR: max connections (1) reached -- try again later", "", "silent"),
    ("ssh: connect to host h port 22: Connection refused", "", "silent"),
    ("Failed to cat: AccessDenied: Access Denied", "never", ""),
    ("Failed to create file system: config name contains invalid characters", "never", "silent"),
    ("Failed to cat: read tcp: i/o timeout", "", "silent"),
]


@pytest.mark.parametrize(("words", "never", "silent"), SAID, ids=[each[0] for each in SAID])
def test_words_of_tools_tell_what_cannot_get_better(tmp_path, words, never, silent):
    script = f"never=\nwhy={shlex.quote(words)}\njudge_words\n"
    script += 'echo "${never:+never},${is_silent:+silent}"'
    assert part("peers", script, tmp_path) == f"{never},{silent}\n"


def test_a_certificate_that_does_not_count_is_asked_for_once(tmp_path):
    """Nobody here trusts its authority."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(tls)
    scripts = Scripts(tmp_path, names=("f", "g"), n_ranges=1)
    with odd_server(honest, tls=tls) as server:
        scripts.write(server.url)
        code, said = scripts.start()
    assert code == 1
    assert re.search("gave up after 1 tries: .*/f: exit code 60 of curl: curl: .60. SSL", said), (
        said
    )
    assert "not asked for, since nothing is to be had of https://localhost:" in said


def test_a_host_that_was_heard_has_its_name_still(tmp_path):
    """Where a name server fails for a while, who has answered before is asked again."""
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin/curl"
    curl.write_text(
        f"#!/bin/sh\nn=$(cat {tmp_path}/n 2>/dev/null || echo 0)\n"
        f'case "$*" in *--version) ;; *) n=$((n + 1)) && echo $n >{tmp_path}/n ;; esac\n'
        "[ $n -ne 2 ] || { echo 'curl: (6) Could not resolve host: h' >&2; exit 6; }\n"
        f'exec {shutil.which("curl")} "$@"\n'
    )
    curl.chmod(0o755)
    scripts = Scripts(tmp_path, names=("f", "g"), n_ranges=1)
    path = f"{tmp_path}/bin:{scripts.environment['PATH']}"
    with odd_server(honest) as server:
        scripts.write(server.url)
        code, said = scripts.start(PATH=path)
    assert (code, scripts.has_arrived()) == (0, True), said
    assert "curl: (6) Could not resolve host: h; it is tried again" in said


def test_a_lane_whose_host_is_silent_ends(tmp_path):
    """The first file has all tries, nineteen others one each, and the rest is not asked for."""
    names = tuple(f"f{n}" for n in range(25))
    scripts = Scripts(tmp_path, names=names, n_ranges=1, n_bytes=10)
    with odd_server(honest) as server:
        url = server.url
    scripts.write(url)
    code, said = scripts.start(DATACOLLECT_EVERY_S="0.01")
    assert code == 1
    assert said.count("it is tried again after 0.01 s, 2 times at most") == 1
    assert said.count("gave up after 3 tries") == 1
    assert said.count("gave up after 1 tries") == 19
    assert said.count("not asked for, since nothing is to be had of") == 5
    assert all(re.search(rf"/{name}(:|$)", said, re.MULTILINE) for name in names)


def test_files_behind_one_that_is_never_answered_arrive(tmp_path):
    scripts = Scripts(tmp_path, names=("f", "g", "h"), n_ranges=1)

    def answer(request):
        if request.path == "/f":
            raise ConnectionError  # the connection ends
        return honest(request)

    with odd_server(answer) as server:
        scripts.write(server.url)
        code, said = scripts.start()
    assert code == 1
    assert "gave up after 3 tries" in said
    assert (tmp_path / "into/S/g").read_bytes() == data_of("g")
    assert (tmp_path / "into/S/h").read_bytes() == data_of("h")


def test_a_relay_tells_what_it_gives_up_and_who_waits_for_it_ends(tmp_path):
    """The destination would wait for an hour; started again, the relay has forgotten it."""
    scripts = Scripts(tmp_path, relay=True, n_ranges=1)
    served = tmp_path / "K"

    def answer(request):
        if not request.path.startswith("/K/"):
            return Answer(404) if is_bad else honest(request)
        path = served / request.path.removeprefix("/K/")
        return part_of(path.read_bytes(), request) if path.is_file() else Answer(404)

    with odd_server(answer) as server:
        scripts.write(server.url)
        for is_bad, ended in ((True, 1), (False, 0)):
            assert scripts.start("K", "K")[0] == ended
            code, said = scripts.start(DATACOLLECT_PATIENCE_S="3600")
            assert code == ended, said
            assert ("gave up: its relay has given up http" in said) == is_bad
    assert scripts.has_arrived()


def test_once_in_a_while_a_line_says_how_far_it_is(tmp_path):
    """The server holds the second half of one file back until two lines have been said."""
    scripts = Scripts(tmp_path, names=("f", "g"), n_ranges=1)
    go_on = threading.Event()

    def answer(request):
        if request.path == "/g":
            assert go_on.wait(60)
        return honest(request)

    with odd_server(answer) as server:
        scripts.write(server.url)
        lines = []
        with subprocess.Popen(
            ["sh", "D.sh", "into"],
            cwd=tmp_path,
            env=scripts.environment | {"DATACOLLECT_SAY_S": "0.2"},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            for line in process.stderr:
                lines.append(line)
                if sum("fetches S/g" in each for each in lines) == 2:
                    go_on.set()
        assert process.returncode == 0, lines
    # Two lines before the other half may come; a busy machine shows more of them, and of what came.
    shown = [line for line in lines if "fetches S/g" in line][:2]
    begins = r"D: 50 %: 200 kB of 400 kB, 1 of 2 files, (nothing since the last line|\S+ .?bit/s)"
    whom = f"; fetches S/g from {re.escape(server.url)}\n"
    for line in shown:
        assert re.fullmatch(f"{begins}(, .* left)?{whom}", line), line
    assert lines[-1] == "D: done\n"
    left = [each for each in (tmp_path / "into/.datacollect").iterdir() if each.is_file()]
    assert {each.name for each in left} <= {"export.json", "lock", "plan", "started"}


def test_a_line_that_is_under_way_at_the_end_leaves_nothing_behind(tmp_path):
    """awk writes the times of lines; here it begins a second late, after all has come."""
    scripts = Scripts(tmp_path, names=("f",), n_ranges=1)
    slow = tmp_path / "slow/awk"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\ncase $* in *pace=*) sleep 1 ;; esac\nexec {shutil.which("awk")} "$@"\n'
    )
    slow.chmod(0o755)
    path = f"{slow.parent}:{scripts.environment['PATH']}"
    with odd_server(honest) as server:
        scripts.write(server.url)
        code, said = scripts.start(PATH=path, DATACOLLECT_SAY_S="0.2")
    assert code == 0, said
    left = {each.name for each in (tmp_path / "into/.datacollect").iterdir() if each.is_file()}
    assert left <= {"export.json", "lock", "plan", "started"}


@contextmanager
def listening(*, is_full=False, answer=b""):
    """Somebody who listens, and answers with this at most; with a full backlog nobody connects."""
    with ExitStack() as stack:
        server = stack.enter_context(
            socket.create_server(("127.0.0.1", 0), backlog=0 if is_full else 64)
        )
        for _ in range(4 if is_full else 0):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(server.getsockname())

        def serve():
            with suppress(OSError):  # it is over
                while True:
                    connection = stack.enter_context(server.accept()[0])
                    if connection.recv(65536):
                        connection.sendall(answer)

        if answer:
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown, socket.SHUT_RDWR)
        yield f"127.0.0.1:{server.getsockname()[1]}"


def base_of(kind, address):
    """Return what stands before paths, and how messages call whom it leads to."""
    if kind == "rclone":
        return f":http,url='http://{address}':", f":http,url='http://{address}'"
    scheme = "rsync" if kind == "rsync" else "http"
    return f"{scheme}://{address}/data", f"{scheme}://{address}"


def said_until(scripts, *words, **environment):
    """Start the destination's script; return its lines until these words have come, in order."""
    lines, awaited = [], list(words)
    with subprocess.Popen(
        ["sh", "D.sh", "into"],
        cwd=scripts.folder,
        env=scripts.environment | environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        hangs = threading.Timer(300, process.kill)
        hangs.start()
        for line in process.stderr:
            lines.append(line)
            if awaited[0] in line and not awaited[1:]:
                process.terminate()
                break
            del awaited[: awaited[0] in line]
        process.communicate()
        hangs.cancel()
    return lines


A_TRY = "tried again after 20 s without a connection or 120 s without a byte"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "is_full"), [("curl", True), ("aria2", False), ("rclone", True), ("rsync", False)]
)
def test_who_swallows_packets_is_named_with_how_long_it_is_waited_for(tmp_path, kind, is_full):
    """No connection is ever made, or it stays silent; without it nothing is said for 20 s."""
    need(kind)
    scripts = Scripts(tmp_path, kind, names=("f", "g"), n_ranges=1)
    with listening(is_full=is_full) as address:
        base, peer = base_of(kind, address)
        scripts.write(base)
        (said,) = said_until(scripts, "waiting for")
    wanted = rf"D: waiting for {re.escape(peer)}: nothing of S/f has come for \d+ s; {A_TRY}"
    assert re.fullmatch(f"{wanted}, given up after 3 tries\n", said), said


@pytest.mark.parametrize("own", [None, "own-shell"])
def test_ssh_gives_a_connection_up_as_other_tools_do(tmp_path, own):
    """Unless somebody has a shell of their own."""
    need("rsync")
    (tmp_path / "bin").mkdir()
    shell = tmp_path / "bin" / (own or "ssh")
    shell.write_text(f"#!/bin/sh\necho \"$*\" >>'{tmp_path}/asked'\nexit 255\n")
    shell.chmod(0o755)
    scripts = Scripts(tmp_path, "rsync", n_ranges=1)
    scripts.write("h:/data")
    path = f"{tmp_path}/bin:{scripts.environment['PATH']}"
    assert scripts.start(PATH=path, DATACOLLECT_TRIES="1", RSYNC_RSH=own or "")[0] == 1
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.startswith("h rsync" if own else "-o ConnectTimeout=20 h rsync")


@pytest.mark.slow
def test_a_relay_that_swallows_packets_is_named(tmp_path):
    scripts = Scripts(tmp_path, relay=True, n_ranges=1)
    with listening() as address:
        scripts.write("http://127.0.0.1:9", f"http://{address}")
        (said,) = said_until(scripts, "waiting for", DATACOLLECT_PATIENCE_S="3600")
    wanted = rf"D: waiting for http://{address}: nothing of S/f has come for \d+ s; {A_TRY}"
    assert re.fullmatch(f"{wanted}, given up after 3600 s\n", said), said


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["curl", "aria2", "rclone"])
def test_who_has_answered_is_not_named(tmp_path, kind):
    """T sends the head of its answer alone, S nothing; a line of how far it is ends each look."""
    need(kind)
    hosts = [dc.Host("S", 1000), dc.Host("T", 1000), dc.Host("D")]
    links = [dc.Link("S", "D", 1e9), dc.Link("T", "D", 1e9)]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    (tmp_path / "files.csv").write_text("host,path,bytes\nS,f,1000\nT,g,1000\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    with listening() as silent, listening(answer=head) as heard:
        pairs = [("S", silent), ("T", heard)]
        bases = [f"{name}={base_of(kind, each)[0]}/{{path}}" for name, each in pairs]
        templates = read_templates(bases, [], problem.names, is_url=kind != "rclone")
        manifest = read_manifest(tmp_path / "files.csv")
        found = export(problem, dc.coordinated(problem), manifest, kind, templates)
        (tmp_path / "D.sh").write_text(found.texts["D.sh"])
        scripts = Scripts(tmp_path, kind)
        said = said_until(scripts, "waiting for", "fetches T/g", DATACOLLECT_SAY_S="1")
    (named,) = [line for line in said if "waiting for" in line]
    assert f"waiting for {base_of(kind, silent)[1]}: nothing of S/f" in named
    assert f"fetches T/g from {base_of(kind, heard)[1]}" in said[-1]


def test_each_host_that_is_silent_is_named_once_and_no_other(tmp_path):
    """Of two lanes to h one line; others were asked just now, have answered, or went on."""
    (tmp_path / ".datacollect").mkdir()
    lanes = ["700 h", "600 h", "900 late", "700 heard", "700 gone", "700 my remote"]
    for number, words in enumerate(lanes):
        path = f"into/S/{number}\n.datacollect-0-5"
        (tmp_path / f".datacollect/waits-{number}").write_text(f"{words}\ntold\n{path}\n")
    settings = "judged= partial=into connect_s=20 idle_s=120\nclock() { now_cs=1000; }\n"
    settings += "say() { printf '%s\\n' \"$*\"; }\n"
    settings += "has_answered() { case $2 in *3) ;; *4) : >$2 && false ;; *) false ;; esac; }\n"
    said = part("tell", f"{settings}who_is_silent\nwho_is_silent", tmp_path)
    assert said == (
        f"waiting for h: nothing of S/0\n has come for 3 s; {A_TRY}, told\n"
        f"waiting for my remote: nothing of S/5\n has come for 3 s; {A_TRY}, told\n"
    )


def test_each_relay_that_shows_no_mark_for_a_minute_is_named_once(tmp_path):
    """Of two lanes to k one line; others were asked for less than that, or show it meanwhile."""
    (tmp_path / ".datacollect").mkdir()
    for number, since in enumerate(["4000 k", "3000 k", "4001 late", "", "100 my remote"]):
        text = f"{since}\nanswers 404 for k/{number}\n" if since else ""
        (tmp_path / f".datacollect/lacks-{number}").write_text(text)
    settings = "named=\nclock() { now_cs=10000; }\nsay() { printf '%s\\n' \"$*\"; }\n"
    said = part("tell", f"{settings}who_lacks\nwho_lacks", tmp_path)
    assert said == f"k answers 404 for k/0{ADVICE}\nmy remote answers 404 for k/4{ADVICE}\n"


def test_a_mark_is_lacking_since_the_first_of_answers_that_say_so(tmp_path):
    (tmp_path / ".datacollect").mkdir()
    settings = "lane=0 peer=k\nclock() { now_cs=$at; }\ntell() { cat .datacollect/lacks-0; }\n"
    steps = "at=5; lacks a; at=6; lacks b; tell; lacks_no_more; tell; at=7; lacks c; tell"
    assert part("tell", settings + steps, tmp_path) == "5 k\na\n7 k\nc\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(PARTS))
def test_a_relay_that_has_no_mark_is_told_with_what_may_be_the_matter(tmp_path, kind):
    """Its script never runs; the minute is over at once."""
    need(kind)
    scripts = Scripts(tmp_path, kind, relay=True, n_ranges=1)
    with odd_server(lambda _: Answer(404)) as server:
        base = base_of(kind, server.url.removeprefix("http://"))[0]
        if kind == "rsync":
            (tmp_path / "there").mkdir()
            base = str(tmp_path / "there")
        scripts.write(base)
        text = (tmp_path / "D.sh").read_text()
        assert text.count("\nmost_lacking_s=60\n") == 1
        text = text.replace("most_lacking_s=60", "most_lacking_s=0")
        (tmp_path / "D.sh").write_text(text)
        said = said_until(scripts, "is its script running", DATACOLLECT_PATIENCE_S="3600")
    shown = "says that there is no" if kind == "rsync" else "answers 404 for"
    folder = "K/S/." if kind == "rsync" else "K/S"
    mark = f"{base}/{folder}/f.datacollect-0-200000"
    assert re.fullmatch(f"D: .* {shown} {re.escape(mark + ADVICE)}\n", said[-1]), said


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--nope"], "no option --nope, only --dry-run; a folder of that name is ./--nope"),
        (["--dry-run", "-x"], "no option -x, only"),
        (["into", "--help"], "no option --help, only"),
        (["into", "other"], "one folder is expected, not into and other"),
    ],
)
def test_what_a_script_does_not_know_begins_nothing(tmp_path, words, named):
    scripts = Scripts(tmp_path, n_ranges=1)
    with odd_server(honest) as server:
        scripts.write(server.url)
        before = sorted(tmp_path.rglob("*"))
        code, said = scripts.start("D", *words[:1], more=words[1:])
    assert (code, server.requests, sorted(tmp_path.rglob("*"))) == (2, [], before)
    assert named in said


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("PATIENCE_S", "300.0", "whole seconds, such as 3600"),
        ("PATIENCE_S", "1h", "whole seconds, such as 3600"),
        ("PATIENCE_S", "08", "whole seconds, such as 3600"),
        ("TRIES", "0", "a whole number above 0, such as 20"),
        ("TRIES", "many", "a whole number above 0, such as 20"),
        ("EVERY_S", "1.2.3", "seconds, such as 5 or 0.5"),
        ("EVERY_S", "5s", "seconds, such as 5 or 0.5"),
        ("SAY_S", "never", "seconds, such as 60"),
        ("START", "2026-10-24", "whole seconds since 1970, as date +%s prints them"),
    ],
)
def test_a_setting_with_which_no_script_can_count_begins_nothing(tmp_path, name, value, wanted):
    scripts = Scripts(tmp_path, n_ranges=1)
    with odd_server(honest) as server:
        scripts.write(server.url)
        before = sorted(tmp_path.rglob("*"))
        code, said = scripts.start(**{f"DATACOLLECT_{name}": value})
    assert (code, server.requests, sorted(tmp_path.rglob("*"))) == (2, [], before)
    assert said == f"D: DATACOLLECT_{name} must be {wanted}, got {value}\n"


@pytest.mark.parametrize("words", [["./-x"], []])
def test_a_folder_may_begin_with_a_dash_or_be_the_present_one(tmp_path, words):
    scripts = Scripts(tmp_path, n_ranges=1)
    with odd_server(honest) as server:
        scripts.write(server.url)
        command = ["sh", "D.sh", *words]
        subprocess.run(command, cwd=tmp_path, env=scripts.environment, check=True, timeout=300)
    assert (tmp_path / (words or ["."])[0] / "S/f").read_bytes() == data_of("f")


@pytest.mark.parametrize("word", ["--dry-run", "into"])
def test_a_dry_run_is_one_wherever_the_word_stands(tmp_path, word):
    scripts = Scripts(tmp_path, n_ranges=1)
    scripts.write("http://127.0.0.1:9")
    other = "into" if word == "--dry-run" else "--dry-run"
    code, said = scripts.start("D", word, more=[other])
    assert code == 0
    assert "D: would fetch 200 kB from http://127.0.0.1:9" in said
    assert not (tmp_path / "into").exists()


def part(name, script, folder):
    """Run what is said by a part of the scripts."""
    text = (package_files("datacollect.exports") / f"{name}.sh").read_text(encoding="utf-8")
    ended = subprocess.run(
        ["sh", "-c", f"{text}\n{script}"], cwd=folder, capture_output=True, text=True, check=True
    )
    return ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("predicted_s", "left"), [("", "7.5 s to 30 s"), ("51.0", "20 s to 30 s"), ("90", "about 59 s")]
)
def test_how_long_the_rest_takes_lies_between_the_slowest_and_the_fastest_of_late(
    tmp_path, predicted_s, left
):
    """10 s at 8 and 20 s at 2 MB/s, then nothing: 60 MB more take 7.5 s to 30 s.

    Yet no piece is asked for before its start: 31 s after the start of a plan of 51 s it is 20 s.
    """
    (tmp_path / "pace").write_text("pace\t100\t0\npace\t110\t80000000\npace\t130\t120000000\n")
    survey = "survey() { printf '180000000\\t120000000\\t0\\thttp://h\\nfiles\\t2\\t3\\n'; }"
    settings = f"pace=pace started=100 predicted_s={predicted_s}\ndate() {{ echo 131; }}"
    said = part("tell", f"{survey}\n{settings}\nhow_far", tmp_path)
    assert said == (
        f"66 %: 120 MB of 180 MB, 2 of 3 files, nothing since the last line, {left} left\n"
    )


@pytest.mark.parametrize(
    ("took_s", "times", "why"),
    [
        (14, "9 0 0 900 900 3 0", ""),
        (30, "9 1500 100 900 900 3 0", ": 15 s were spent on waiting for relays"),
        (30, "9 100 1500 900 900 3 0", ": 15 s were spent between tries"),
        (
            30,
            "9 0 0 3000 1000 100 18",
            f": each of 100 requests took 0.18 s {BESIDE}",
        ),
        (30, "9 0 0 3000 1000 100 2", ": bytes came slower than planned, which cost 18 s"),
        (5, "9 0 0 500 1000 3 0", ": what it asked for was there, or came faster than planned"),
    ],
)
def test_what_was_predicted_is_compared_and_explained_where_it_is_far_off(
    tmp_path, took_s, times, why
):
    """The lane that ended last speaks; ten seconds were predicted."""
    (tmp_path / ".datacollect").mkdir()
    (tmp_path / ".datacollect/times").write_text(f"{times}\n8 9999 9999 9999 1 1 9999\n")
    settings = f"host=D predicted_s=10.0 is_again= started=1000\ndate() {{ echo {1000 + took_s}; }}"
    said = part("tell", f"{settings}\nhow_long", tmp_path)
    took = f"{took_s:.1f}" if took_s < 10 else str(took_s)
    assert said == f"D: took {took} s, 10 s predicted{why}\n"


@pytest.mark.parametrize(
    ("before_s", "why"),
    [(14, "15 s were spent on waiting for relays"), (16, "it was started again meanwhile")],
)
def test_of_a_start_again_and_what_took_long_in_it_the_larger_is_told(tmp_path, before_s, why):
    (tmp_path / ".datacollect").mkdir()
    (tmp_path / ".datacollect/times").write_text("9 1500 100 900 900 3 0\n")
    settings = f"host=D predicted_s=10.0 is_again=yes started=1000 start={1000 + before_s}-7\n"
    said = part("tell", f"{settings}date() {{ echo 1035; }}\nhow_long", tmp_path)
    assert said == f"D: took 35 s, 10 s predicted: {why}\n"


def test_a_dry_run_says_what_would_be_fetched_and_does_nothing(tmp_path):
    """Two files of 200 kB at 100 kB/s, of which one is there."""
    scripts = Scripts(tmp_path, names=("f", "g"), n_ranges=1)
    slow = dc.Problem.from_hosts(
        [dc.Host("S", 400_000), dc.Host("K"), dc.Host("D")], [dc.Link("S", "D", 1e5)], "D"
    )
    with odd_server(honest) as server:
        scripts.write(server.url, problem=slow)
        before = sorted(tmp_path.rglob("*"))
        code, said = scripts.start("D", "--dry-run")
        assert (code, server.requests, sorted(tmp_path.rglob("*"))) == (0, [], before)
        assert f"D: would fetch 400 kB from {server.url} in 2 pieces by curl" in said
        assert "0 B of 400 kB are here already; the last byte is expected 4.0 s after" in said
        (tmp_path / "S").mkdir()
        (tmp_path / "S/f").write_bytes(data_of("f"))
        said = scripts.start("D", "--dry-run")[1]
    assert "would fetch 200 kB" in said
    assert "200 kB of 400 kB are here already" in said


def test_a_dry_run_names_every_peer_whatever_their_sizes(tmp_path):
    sizes = {"a": "5", "b": "5000000000", "c": "70000", "d": "900000000000"}
    rows = "".join(f"{n_bytes}\\t0\\t0\\t{peer}\\n" for peer, n_bytes in sizes.items())
    settings = f"survey() {{ printf '{rows}'; }}\nhost=D command=curl predicted_s="
    said = part("tell", f"{settings}\nwould_do", tmp_path)
    assert [line.split(" in ")[0] for line in said.splitlines()[:4]] == [
        "D: would fetch 5 B from a",
        "D: would fetch 5.0 GB from b",
        "D: would fetch 70 kB from c",
        "D: would fetch 900 GB from d",
    ]
    assert len(said.splitlines()) == 5
