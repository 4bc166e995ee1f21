"""A pull from a healthy source and from hostile ones beside it, and what is demanded of it."""

import contextlib
import json
import re
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from transfer.hostile.hostile_agent import HostileAgent

import datacollect as dc
from datacollect.net.keys import new_private_key, write_private_key

# Longer than a healthy source may pause on a loaded machine.
PATIENCE_S, TIMEOUT_S = 4.0, 2.5
# What the issue of being stuck is about: whatever others do, the healthy source is there by then.
# On a loaded machine, too: only who waits for others for good is later.
HEALTHY_WITHIN_S = 60.0
# A pull ends by itself: patience, some steps, and the waits of tests that share two processors.
ENDS_WITHIN_S = 90.0
# Those that go on as long as they like are stopped so long after the healthy source is there.
GRACE_S = 2.0
# So long that no test waits for its end.
LONG = {"patience_s": 300.0, "timeout_s": 300.0}
LONGEST_WORDS = 400
MOST_COMPLAINTS = 50


def data(n_bytes, seed=0):
    return np.random.default_rng(seed).bytes(n_bytes)


HEALTHY = {"a/one": data(100, 10), "a/two": data(300_000, 11), "c": data(5000, 12), "empty": b""}
FILES = {
    "a/one": data(100),
    "a/two": data(30_000, 1),
    "b": data(70_000, 2),
    "e": b"",
    "z": b"12345",
}

# Nobody's words are an exception of Python.
INTERNAL = re.compile(r"internal error|please report|Traceback|\b[A-Z][A-Za-z]*(Error|Exception)\b")
GONE = "gone from the source"
OUTSIDE = Path("/tmp/datacollect-hostile-outside")


@dataclass
class Trial:
    """One pull into `base`/down/into, and all complaints about it.

    Attributes
    ----------
    relents : bool
        Whether all are honest once the healthy source is there: with a patience that no test waits
        for, it is there before them or never.
    """

    base: Path
    cases: dict
    healthy_host: str = "127.0.0.1"
    limits: dict = field(default_factory=dict)
    ends_within_s: float = ENDS_WITHIN_S
    relents: bool = False
    complaints: list = field(default_factory=list)
    healthy_s: float | None = None
    took_s: float | None = None
    answer: object = None

    def __post_init__(self):
        self.into = self.base / "down" / "into"
        self.into.mkdir(parents=True)
        keys = self.base / "keys"
        keys.mkdir()
        write_private_key(keys / "collector.key", new_private_key())
        self.key = keys / "collector.key"
        self.healthy = HostileAgent("S", keys, HEALTHY, host=self.healthy_host)
        self.hostile = {
            name: HostileAgent(name, keys, FILES, case.misbehaviours)
            for name, case in self.cases.items()
        }
        for name, case in self.cases.items():
            if case.wants_hashes:  # files of the right sizes lie there already
                (self.into / name / "a").mkdir(parents=True)
                for path in ("a/two", "b"):
                    (self.into / name / path).write_bytes(FILES[path])
        self.told, self.error = [], None

    @property
    def agents(self):
        return [self.healthy, *self.hostile.values()]

    def collection(self, **limits):
        return {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(self.key),
            "agents": {agent.name: agent.entry for agent in self.agents},
            "sources": {agent.name: {} for agent in self.agents},
            "limits": {"patience_s": PATIENCE_S, "timeout_s": TIMEOUT_S} | limits,
        }

    # Pulls ------------------------------------------------------------------------------------

    def run(self, method="adaptive"):
        """Carry it out and judge it; return the complaints."""
        try:
            if self._pull(method):
                self._judge()
                self._again(method)
        finally:
            for agent in self.agents:
                agent.stop()
        return self.complaints

    def _complain(self, what, name=None):
        of = f"{name}: {self.cases[name].describe()}\n    " if name in self.cases else ""
        if name is None and len(self.cases) == 1:
            of = f"{next(iter(self.cases.values())).describe()}\n    "
        if of + what not in self.complaints and len(self.complaints) < MOST_COMPLAINTS:
            self.complaints.append(of + what)

    def _pull(self, method):
        """Pull; return whether it has ended."""

        def work():
            try:
                self.answer = dc.pull(
                    self.collection(**self.limits), self.into, method, tell=self.told.append
                )
            except BaseException as error:  # noqa: BLE001 - judged below
                self.error = error

        thread = threading.Thread(target=work, name="the pull", daemon=True)
        begun_s = time.monotonic()
        thread.start()
        self._watch(thread, begun_s)
        if thread.is_alive():
            self._complain(f"it has not ended after {self.ends_within_s:g} s:\n{stacks()}")
            for agent in self.hostile.values():
                agent.stop()
            thread.join(20)
            if thread.is_alive():
                self._complain(f"it goes on without any hostile source:\n{stacks()}")
                return False
        self.took_s = time.monotonic() - begun_s
        if self.error is not None:
            words = "".join(traceback.format_exception(self.error)[-12:])
            self._complain(f"it raises {words}")
        if self.healthy_s is None and self.is_there("S", HEALTHY):
            self.healthy_s = self.took_s
        if self.healthy_s is None or self.healthy_s > HEALTHY_WITHIN_S:
            self._complain(f"the healthy source was there after {self.healthy_s} s")
        return True

    def _watch(self, thread, begun_s):
        endless = [self.hostile[name] for name, case in self.cases.items() if case.is_endless]
        if self.relents:
            endless = []
        while thread.is_alive() and time.monotonic() < begun_s + self.ends_within_s:
            thread.join(0.05)
            now_s = time.monotonic() - begun_s
            if self.healthy_s is None and self.is_there("S", HEALTHY):
                self.healthy_s = now_s
                if self.relents:
                    self._make_honest()
            if self.healthy_s is not None and now_s > self.healthy_s + GRACE_S:
                for agent in endless:
                    agent.stop()
                endless = []

    def is_there(self, source, files):
        """Whether all files of a source lie there, byte for byte."""
        base = self.into / source
        with contextlib.suppress(OSError):
            return all((base / path).read_bytes() == data for path, data in files.items())
        return False

    def is_there_as_told(self, source):
        """Whether all files lie there in a size that was listed, with bytes that were sent."""
        base, agent = self.into / source, self.hostile[source]
        for path, data in FILES.items():
            with contextlib.suppress(OSError):
                found = (base / path).read_bytes()
                sizes = {len(data)} | agent.listed.get(path, set())
                if len(found) in sizes and why_wrong(found, path, agent) is None:
                    continue
            return False
        return True

    # Judgement --------------------------------------------------------------------------------

    def _judge(self):
        self._judge_folder()
        for line in self.told:
            self._judge_words(line, "tells")
        self._judge_log()
        if self.answer is None:
            return
        missing = {}
        for each in self.answer.missing:
            missing.setdefault(each.source, []).append(each)
            self._judge_words(each.why, "missing", each.source)
            if "\ud800" <= max(each.path, default="") <= "\udfff":
                self._complain(f"a path that is no text: {each.path!r}", each.source)
        if "S" in missing:
            self._complain(f"the healthy source has missing files: {missing['S'][:3]}")
        lacking = [n for n in self.cases if not self.is_there_as_told(n)]
        if self.answer.complete and (lacking or missing):
            for name in lacking:
                self._complain("it says complete, and not all is there", name)
        for name in lacking:
            if name not in missing:
                self._complain("not all is there, and it is not named as missing", name)
        json.dumps(self.answer.to_dict(), allow_nan=False).encode()

    def _judge_words(self, words, where, name=None):
        ours = " ".join(words.split("\n"))
        if not words or not ours.isprintable() or len(words) > LONGEST_WORDS:
            self._complain(f"{where}: not fit to be read, {len(words)}: {words[:500]!r}", name)
        if INTERNAL.search(words):
            self._complain(f"{where}: {words!r}", name)

    def _judge_log(self):
        path = self.into / ".datacollect" / "log.jsonl"
        for line in path.read_text().splitlines():
            tree = json.loads(line)
            why = str(tree.get("why", "")).removeprefix("InfeasibleError: ")  # ours, of a plan
            if INTERNAL.search(why):
                name = tree.get("host", tree.get("source", next(iter(tree.get("hosts", ())), None)))
                self._complain(f"its log says: {line[:600]}", name)

    def _judge_folder(self):
        """Nothing lies outside, and what has its final name has the bytes that were sent for it."""
        if OUTSIDE.exists() or OUTSIDE.is_symlink():
            self._complain(f"{OUTSIDE} was written")
        outside = {p.name for p in (self.base / "down").iterdir()} - {"into"}
        inside = {p.name for p in self.into.iterdir()} - {".datacollect", "S", *self.cases}
        beside = {p.name for p in self.base.iterdir()} - {"down", "keys"}
        if outside or inside or beside:
            self._complain(f"written outside: {outside | inside | beside}")
        for name, agent in self.hostile.items():
            base = self.into / name
            for path in base.rglob("*") if base.is_dir() else ():
                if path.is_symlink():
                    self._complain(f"a link: {path}", name)
                elif path.is_file():
                    relative = str(path.relative_to(base))
                    why = why_wrong(path.read_bytes(), relative, agent)
                    if why:
                        self._complain(f"{relative!r}: {why}", name)

    def _again(self, method):
        """With honest agents the same command ends well, and waits for nobody."""
        self._make_honest()
        begun_s = time.monotonic()
        try:
            answer = dc.pull(self.collection(**LONG), self.into, method)
        except Exception as error:  # noqa: BLE001 - judged
            words = "".join(traceback.format_exception(error)[-12:])
            self._complain(f"the second pull, from honest agents, raises {words}")
            return
        by_source, is_gone = {}, False
        for each in answer.missing:
            if each.path not in FILES and each.why == GONE:
                is_gone = True  # it was listed once, and never came
            else:
                by_source.setdefault(each.source, []).append((each.path, each.why))
        for name, rows in by_source.items():
            self._complain(f"missing after the second pull, from honest agents: {rows[:5]}", name)
        for name in self.cases:
            if not self.is_there_as_told(name):
                self._complain("not there after the second pull, from honest agents", name)
        if not answer.complete and not by_source and not is_gone:
            self._complain("the second pull, from honest agents, is not complete")
        took_s = time.monotonic() - begun_s
        if took_s > HEALTHY_WITHIN_S:
            self._complain(f"the second pull, from honest agents, took {took_s:.1f} s")

    def _make_honest(self):
        """Let hostile agents begin again, without what they are at."""
        for agent in self.hostile.values():
            agent.stop()
            agent.misbehaviours = ()
            agent.resume()


def why_wrong(found, path, agent):
    """Return why a file's bytes are not those that its agent sent with their digest; None: right.

    Where an agent says that there are holes they may be zeros.
    """
    if found == agent.files.get(path):
        return None
    covered = bytearray(len(found))
    for (offset, length), versions in agent.sent.get(path, {}).items():
        if found[offset : offset + length] in versions:
            covered[offset : offset + length] = b"\1" * length
    wrong = [i for i, is_sent in enumerate(covered) if not is_sent and found[i]]
    if wrong:
        return f"of {len(found)} bytes {len(wrong)} were never sent so, the first at {wrong[0]}"
    return None


def stacks():
    """Return what all threads are at, those of agents left out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        lines = traceback.format_stack(frame)
        if "hostile_agent" not in lines[-1] and not any("hostile_agent" in each for each in lines):
            found.append(f"--- {names.get(ident)}\n" + "".join(lines[-4:]))
    return "\n".join(found)


def complaints_of(base, seeds_and_cases, method="adaptive", **more):
    """Return what is to be said against a pull from a healthy source and from one for each case."""
    cases = {f"H{i}": case for i, case in enumerate(seeds_and_cases)}
    return Trial(base, cases, **more).run(method)
