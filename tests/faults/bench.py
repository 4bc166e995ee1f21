"""A place for one experiment at a time: it makes the fault, lets the program run, has it judged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.experiments import (
    END,
    IMPORTS,
    KILL,
    NOTHING,
    SHIM,
    SLOW,
    SLOW_S,
    STRACE,
    TARGETS,
    Experiment,
    importing,
    shimmed,
    traced,
)
from faults.judge import (
    CRASHES,
    KILLED,
    NOT_MADE,
    REFUSALS,
    Finding,
    absent_files,
    judge_again,
    judge_end,
    judge_kept,
    judge_pull,
    judge_status,
)
from faults.processes import LIMIT_S, STUCK, Ended, Running, Zygote
from faults.sites import Names, Record, calls_of, lines_of, resolved
from faults.time_limits import CLEAN_TRIES, Waiting, limit_s, longer, said
from faults.world import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from faults.laboratory import Laboratory
    from faults.world import Variant

RECORDED = ("-e", "trace=%file,%desc,%network,%process,%memory")
AGENT_ENDS_WITHIN_S = 15.0

# What only sockets can say.
OF_SOCKETS = frozenset(
    {END, NOTHING, "ECONNRESET", "ETIMEDOUT", "ECONNREFUSED", "ENETUNREACH", "EPIPE", "ENOTCONN"}
)


@dataclass(frozen=True)
class Result:
    """Result of an experiment.

    Attributes
    ----------
    key : str
    reached : int
        How often the fault was injected.
    as_meant : bool
        Whether it hit the site that was meant; threads may come in another order.
    code : int or str
        How the run with the fault ended.
    findings : tuple of (str, str)
    stderr : str
        The last of what the run said.
    took_s : float
    tries : int
        2 where the first may have been slow only, so that the second one counts.
    """

    key: str
    reached: int
    as_meant: bool
    code: int | str
    findings: tuple[tuple[str, str], ...]
    stderr: str = ""
    took_s: float = 0.0
    tries: int = 1


@dataclass
class Bench:
    """A place for one experiment at a time."""

    laboratory: Laboratory
    zygote: Zygote
    slot: int
    folder: Path
    _variants: dict[str, Variant] = field(default_factory=dict)

    # Records of clean runs --------------------------------------------------------------------

    def record(self, target: str) -> Record:
        """Return the sites of a clean run, by a tracer."""
        folder = self._fresh("record")
        trace = folder / "trace"
        tracer = ["strace", "-f", "-yy", "-e", "signal=none", *RECORDED, "-o", str(trace)]
        self._clean_run(target, folder, tracer=tracer)
        return Record.of(calls_of(lines_of(trace), self._names(folder)), self._names(folder))

    def counts(self, target: str) -> dict[str, int]:
        """Return how often each call was made from each place of the program, by the shim."""
        folder = self._fresh("counts")
        self._clean_run(target, folder, fault={"record": str(folder / "counts")})
        return json.loads((folder / "counts").read_text())

    def n_imports(self) -> int:
        """Return how often a pull opens files while nothing is imported beforehand."""
        folder = self._fresh("imports")
        command = ["strace", "-f", "-o", str(folder / "trace"), "-e", "trace=openat"]
        self._spawned(folder, command)
        return sum("openat(" in line for line in lines_of(folder / "trace"))

    def experiments(
        self, targets: Sequence[str] = TARGETS, places: int = 8, *, with_imports: bool = True
    ) -> list[Experiment]:
        """Return all experiments: from records of clean runs, which may take their time."""
        found: list[Experiment] = []
        with longer():
            for target in targets:
                if self.laboratory.may_trace:
                    found += traced(target, self.record(target), places)
                if target != "R":  # what a relay's Python does is what a source's does
                    found += shimmed(target, self.counts(target), max(1, places // 2))
            if self.laboratory.may_trace and with_imports and "pull" in targets:
                found += importing(self.n_imports(), places)
        return found

    def _clean_run(self, target: str, folder: Path, **how: Any) -> None:
        for _ in range(CLEAN_TRIES):
            self._fresh(folder.name)
            ended = self._tried_clean(target, folder, **how)
            if ended.code == 0:
                return
        raise AssertionError(f"clean runs of {target} fail: {ended.stderr}")

    def _tried_clean(self, target: str, folder: Path, **how: Any) -> Ended:
        into = folder / "into"
        if target not in ("S1", "R"):
            if target == "again":
                self._half_done(into)
            return self.zygote.run(folder, self.laboratory.world.pull_arguments(into), **how)
        variant = self._variant(target)
        agent = self.zygote.start(folder, variant.arguments, **how)
        self._wait_ready(agent)
        arguments = self.laboratory.world.pull_arguments(into, variant)
        pulled, ended = self.zygote.run(folder / "pull", arguments), self._ended_agent(agent)
        return ended if pulled.code == 0 else pulled

    # Experiments ------------------------------------------------------------------------------

    def carry_out(self, experiment: Experiment) -> Result:
        """Carry out an experiment and judge it."""
        try:
            return self._carried_out(experiment)
        except (AssertionError, OSError, ValueError) as error:
            return self._failed(experiment, error)

    def again(self, experiment: Experiment) -> Result:
        """Carry out an experiment that may have been slow only; nothing else is to work then."""
        with longer():
            return replace(self.carry_out(experiment), tries=2)

    def _failed(self, experiment: Experiment, error: Exception) -> Result:
        """Return the result of an experiment that could not be made; make the next possible."""
        self.zygote.close()
        self.zygote = self.laboratory.zygote()
        what = f"the experiment itself failed: {type(error).__name__}: {error}"
        return Result(experiment.key, 0, as_meant=False, code="", findings=((NOT_MADE, what),))

    def _carried_out(self, experiment: Experiment) -> Result:
        begun_s = time.monotonic()
        folder = self._fresh("run")
        if experiment.injector == IMPORTS:
            ended, findings = self._with_failing_imports(experiment, folder)
        elif experiment.target in ("S1", "R"):
            ended, findings = self._with_failing_agent(experiment, folder)
        else:
            ended, findings = self._with_failing_pull(experiment, folder)
        reached, as_meant = self._reached(experiment, folder, ended)
        if reached and not as_meant and experiment.error in OF_SOCKETS:
            # A socket may end or be reset, a file may not: elsewhere it was a lie, and proves
            # nothing.
            reached, findings = 0, []
        if as_meant and experiment.target in ("pull", "again"):
            findings += judge_kept(ended, experiment.call, experiment.kind, experiment.error)
        return Result(
            experiment.key,
            reached,
            as_meant,
            ended.code,
            tuple((f.rule, f.what) for f in findings),
            ended.stderr[-600:],
            round(time.monotonic() - begun_s, 2),
        )

    def _with_failing_pull(
        self, experiment: Experiment, folder: Path
    ) -> tuple[Ended, list[Finding]]:
        world, into = self.laboratory.world, folder / "into"
        if experiment.target == "again":
            self._half_done(into)
        arguments = world.pull_arguments(into)
        ended = self.zygote.run(folder, arguments, **self._how(experiment, folder))
        garbage = experiment.error in ("GARBAGE", "CORRUPT")
        findings = judge_pull(
            ended,
            world.files,
            into,
            may_die=[*may_die(experiment)],
            is_garbage=garbage,
            full_disk=is_full_disk(experiment),
        )
        findings += self._afterwards(ended, into, arguments, is_garbage=garbage)
        return ended, findings

    def _afterwards(
        self, ended: Ended, into: Path, arguments: Sequence[str], *, is_garbage: bool = False
    ) -> list[Finding]:
        """Judge what `status` says, and the same command again."""
        world, folder = self.laboratory.world, into.parent
        status = self.zygote.run(folder / "status", ("status", str(into), "--json"))
        findings = [] if is_garbage else judge_status(status, ended, world.files, into)
        again = self.zygote.run(folder / "again", arguments)
        if is_garbage and again.code == 2 and "damaged" in again.stderr:
            # Garbage that was read may have been written again: that is damage, and said to be.
            (into / ".datacollect").rename(folder / "damaged")
            again = self.zygote.run(folder / "again", arguments)
            return judge_again(again, world.files, into, self.laboratory.kept)
        return findings + judge_again(again, world.files, into, self.laboratory.kept)

    def _with_failing_agent(
        self, experiment: Experiment, folder: Path
    ) -> tuple[Ended, list[Finding]]:
        world, into = self.laboratory.world, folder / "into"
        variant = self._variant(experiment.target)
        arguments = world.pull_arguments(into, variant)
        agent = self.zygote.start(folder, variant.arguments, **self._how(experiment, folder))
        early = self._wait_ready(agent)
        pulled = self.zygote.run(folder / "pull", arguments)
        ended = early or self._ended_agent(agent)
        findings = [
            Finding(f.rule, f"agent: {f.what}") for f in judge_end(ended, [*may_die(experiment)])
        ]
        findings += judge_pull(pulled, world.files, into)
        if pulled.code not in (0, 1):
            findings.append(Finding("b", f"pull: exit {pulled.code}, and the agent failed"))
        hurt = {"S1": ("S1",), "R": ("S2",)}[experiment.target]
        healthy = {name: each for name, each in world.files.items() if name not in hurt}
        if absent := absent_files(healthy, into):
            findings.append(Finding("h", f"{len(absent)} files of healthy sources are not there"))
        clean = self.zygote.start(folder / "clean", variant.arguments)
        try:
            early = self._wait_ready(clean)
            if early is not None:
                findings.append(Finding("g", f"the agent does not start again: {early.stderr}"))
            findings += self._afterwards(pulled, into, arguments)
        finally:
            if early is None:
                self._ended_agent(clean)
        said = f"{ended.stderr[-300:]}\nthe pull said: {pulled.stderr.strip() or 'nothing'}"
        return replace(ended, stderr=said), findings

    def _with_failing_imports(
        self, experiment: Experiment, folder: Path
    ) -> tuple[Ended, list[Finding]]:
        world, into = self.laboratory.world, folder / "into"
        ended = self._spawned(folder, self._tracer(experiment, folder))
        findings = [
            f
            for f in judge_pull(ended, world.files, into)
            # Before its first line runs, Python says in its own way what it lacks.
            if f.rule != "b" or "damage" in f.what
        ]
        return ended, findings + self._afterwards(ended, into, world.pull_arguments(into))

    def _spawned(self, folder: Path, tracer: Sequence[str]) -> Ended:
        """Run a pull that imports everything again, under a tracer."""
        world = self.laboratory.world
        command = world.program.command(*world.pull_arguments(folder / "into"))
        begun_s = time.monotonic()
        child = subprocess.Popen(
            [*tracer, *command],
            env=world.program.environment(),
            cwd=NOWHERE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        texts, code = said(child, LIMIT_S), child.returncode
        if texts is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, 9)
            texts, code = child.communicate(), STUCK
        return Ended(code, *texts, time.monotonic() - begun_s)

    # How a fault is made ----------------------------------------------------------------------

    def _how(self, experiment: Experiment, folder: Path) -> dict[str, Any]:
        if experiment.injector == STRACE:
            return {"tracer": self._tracer(experiment, folder)}
        fault = {
            "call": experiment.call,
            "kind": experiment.kind,
            "error": experiment.error,
            "n": experiment.n,
            "onward": experiment.onward,
            "hits": str(folder / "hits"),
        }
        return {"fault": fault}

    def _tracer(self, experiment: Experiment, folder: Path) -> list[str]:
        ways = {
            KILL: "signal=SIGKILL",
            END: "retval=0",
            NOTHING: "retval=0",
            SLOW: f"delay_enter={int(limit_s(SLOW_S) * 1e6)}",
        }
        way = ways.get(experiment.error, f"error={experiment.error}")
        when = f"{experiment.n}{'+' if experiment.onward else ''}"
        command = ["strace", "-f", "-yy", "-e", "signal=none", "-o", str(folder / "trace")]
        command += ["-e", f"trace={experiment.call}"]
        command += ["-e", f"inject={experiment.call}:{way}:when={when}"]
        for path in experiment.paths:
            command += ["-P", resolved(path, self._names(folder))]
        return command

    def _reached(self, experiment: Experiment, folder: Path, ended: Ended) -> tuple[int, bool]:
        """Return how often the fault came, and whether it came where it was meant to."""
        if experiment.injector == SHIM:
            hits = [*lines_of(folder / "hits")]
            return len(hits), bool(hits)
        calls = calls_of(lines_of(folder / "trace"), self._names(folder))
        if experiment.error == KILL:
            # A tracer does not mark signals: the run has died of it, in its last calls.
            last = {call.thread: call for call in calls}.values()
            meant = any(call.site.kind == experiment.kind for call in last)
            return int(ended.code == KILLED), ended.code == KILLED and meant
        if experiment.error == SLOW:
            n = max(
                (sum(c.thread == t for c in calls) for t in {c.thread for c in calls}), default=0
            )
            return int(n >= experiment.n), n >= experiment.n
        hits = [call for call in calls if call.is_injected]
        anywhere = experiment.kind in ("import", "the whole disk")
        return len(hits), any(anywhere or call.site.kind == experiment.kind for call in hits)

    # Folders, agents --------------------------------------------------------------------------

    def _fresh(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _names(self, folder: Path) -> Names:
        world = self.laboratory.world
        ports = world.ports
        for name, variant in self._variants.items():
            ports[f"{name}, which fails"] = variant.port
        return Names(str(folder / "into"), str(world.folder), ports, tuple(world.files))

    def _variant(self, name: str) -> Variant:
        if name not in self._variants:
            self._variants[name] = self.laboratory.world.variant(name, self.slot)
        return self._variants[name]

    def _half_done(self, into: Path) -> None:
        """Put a pull there that was killed midway; it is made once, and copied."""
        made = self.folder / "half-done"
        world = self.laboratory.world
        for _ in range(50):
            if made.exists():
                break
            folder = self._fresh("half")
            running = self.zygote.start(folder, world.pull_arguments(folder / "into"))
            waiting = Waiting(20)
            while not waiting.is_over() and not any_final(folder / "into", world.files):
                time.sleep(0.001)
            self.zygote.tell(running, 9)
            self.zygote.wait(running)
            if absent_files(world.files, folder / "into"):
                (folder / "into").rename(made)
        assert made.exists(), "no pull could be killed midway"
        shutil.copytree(made, into)

    def _wait_ready(self, agent: Running) -> Ended | None:
        """Wait until an agent is ready; return how it ended, if it did."""
        waiting = Waiting(limit_s(AGENT_ENDS_WITHIN_S))
        while not waiting.is_over():
            if (agent.folder / "stdout").exists() and (agent.folder / "stdout").stat().st_size:
                return None
            if (ended := self.zygote.poll(agent)) is not None:
                return ended
        return None

    def _ended_agent(self, agent: Running) -> Ended:
        agent.begun_s = time.monotonic()
        self.zygote.tell(agent, 15)
        return self.zygote.wait(agent, AGENT_ENDS_WITHIN_S)


def any_final(into: Path, files: dict[str, dict[str, bytes]]) -> bool:
    """Whether some file has its final name."""
    return any((into / source / path).exists() for source, each in files.items() for path in each)


def may_die(experiment: Experiment) -> Iterator[int]:
    """Yield the signals that may end the run."""
    if experiment.error == KILL:
        yield KILLED
    if experiment.call in ("mmap", "mprotect", "mremap", "brk"):
        yield from CRASHES


def is_full_disk(experiment: Experiment) -> bool:
    """Whether the disk that is pulled to is full or fails."""
    its_own = re.match(r"\.datacollect|final|staged|DIR|the whole disk", experiment.kind)
    return experiment.error in REFUSALS and its_own is not None
