"""Keeps copies of all logs of an event: one thread for each log, so that none stops another."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.auditor.verdict_reading import Folder
from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.event import Service
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.receipt.receipt import read_amendments
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.http.published import united
from datacollect.bistro.log_service.log_copy import AMENDMENTS, LogCopy, folder_name
from datacollect.bistro.mirror.copying import LogCopying
from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.documents import document_name, read_bytes, written_durably
from datacollect.files.held_folder import Held
from datacollect.net.fan_out import Outcome, fan_out
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from os import PathLike

    from datacollect.bistro.auditor.log_reading import Asks
    from datacollect.bistro.formats.event.event import Event

FORMAT = "datacollect-mirror/1"
HERE = "this mirror"
STATUS_FILE, EVENT_FILE = "mirror.json", "event.toml"
# How often each source of a log is asked; a service makes a checkpoint a second.
EVERY_S = 1.0
# With `once`, whoever takes longer is named, and gone on with another time.
ONCE_S = 600.0
# How often what was seen is written, if nothing else has changed.
WRITTEN_S = 10.0


@dataclass(frozen=True)
class CopyStanding:
    """Status of the copy of a log.

    Attributes
    ----------
    log : str
        Its origin.
    folder : str
        Below the mirror's.
    size : int
        Entries that are held, and that a quorum of witnesses has signed; -1: nothing is.
    seen_s : int or None
        When a source last had no more than is held, seconds since 1970.
    troubles : dict of str to str
        What is the matter, by source.
    forks : tuple of str
        Evidence that the log has signed two trees.
    """

    log: str
    folder: str
    size: int = -1
    seen_s: int | None = None
    troubles: dict[str, str] = field(default_factory=dict)
    forks: tuple[str, ...] = ()


@dataclass(frozen=True)
class MirrorStanding:
    """Status of a mirror: `event` by its id, when that was so, and its logs."""

    event: str
    time_s: int
    logs: tuple[CopyStanding, ...]

    @property
    def exit_code(self) -> int:
        """0 where all logs are held as far as they show themselves, and nothing is wrong."""
        is_whole = all(log.seen_s and not log.troubles and not log.forks for log in self.logs)
        return 0 if is_whole else 1

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"format": FORMAT, **asdict(self)}


class Mirror:
    """The folder of a mirror, held by one process.

    Parameters
    ----------
    event_file : path-like
    folder : path-like
        Made where it is absent.
    others : sequence of str
        Addresses or folders of other mirrors, to read from as well.
    report : function
        Takes lines that somebody would want to know at once; from other threads, too.

    Raises
    ------
    ProblemError
        The folder is of another event, or another process has it.
    StoreError, NotWrittenError
        The disk is full, or fails.
    """

    def __init__(
        self,
        event_file: str | PathLike[str],
        folder: str | PathLike[str],
        others: Sequence[str] = (),
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        require_mirrors(others)
        data = read_bytes(event_file)
        self._original = read_event(data, document_name(event_file))
        self.folder, self._others, self._report = Path(folder), others, report
        with suppress(OSError):  # which is said below
            # For others to read: what is held alone is for its owner.
            self.folder.mkdir(parents=True, exist_ok=True)
        self._held = Held(self.folder)
        self._end = threading.Event()
        try:
            _take_event(self.folder, data)
            self._standing: dict[str, CopyStanding] = {}
            self._held_amendments: list[bytes] = []
            self.event = self._original
        except BaseException:
            self._held.close()
            raise

    def _amended(self) -> Event:
        """Return the event as the amendments that are held here have left it."""
        held, rows = [], []
        # What is damaged is named by whoever copies that log.
        for each in self._original.services:
            with suppress(OSError):
                held.append((self.folder / folder_name(each.log) / AMENDMENTS).read_bytes())
        if held == self._held_amendments:
            return self.event
        self._held_amendments = held
        with suppress(ProblemError):
            rows = [read_amendments(data, self._original.id, AMENDMENTS) for data in held]
        with suppress(ProblemError):
            return amended(self._original, published(self._original, united(rows), []))
        return self._original

    def _new_logs(self) -> list[Service]:
        """Return the logs that were not copied before: an amendment may have named one."""
        self.event = self._amended()
        # First those that tell which log of verdicts is the one now. One that nobody can ask is
        # read from other mirrors alone.
        all_logs = logs_of(self.event) if self._standing else self._original.services
        found = [
            each
            for each in all_logs
            if (each.url or self._others) and each.log.name not in self._standing
        ]
        for each in found:
            self._standing[each.log.name] = CopyStanding(each.log.name, folder_name(each.log))
        return found

    def close(self) -> None:
        """Let others have the folder; what is under way is gone on with another time."""
        self._end.set()
        self._held.close()

    def copy_once(self) -> MirrorStanding:
        """Take what all sources have now; return how the mirror is then."""
        while services := {each.log.name: each for each in self._new_logs()}:
            outcomes = self._copied_once(services)
            for name in services:
                outcome = outcomes.get(name)
                if outcome is None:
                    self._trouble(name, HERE, f"its sources have not ended within {ONCE_S:g} s")
                else:
                    outcome.result()
        return self._written()

    def _copied_once(self, services: dict[str, Service]) -> dict[str, Outcome[None]]:
        return fan_out(services, lambda name: self._copy(services[name], is_once=True), ONCE_S)

    def copy_on(self) -> None:
        """Take what is new, again and again, until who calls is interrupted."""
        before, at_s = None, 0.0
        while True:
            for service in self._new_logs():
                threading.Thread(target=self._copy, args=(service,), daemon=True).start()
            now = {**self._standing}
            if now != before and (
                time.monotonic() >= at_s + WRITTEN_S or _is_news(before or {}, now)
            ):
                self._written()
                before, at_s = now, time.monotonic()
            time.sleep(EVERY_S)

    def _copy(self, service: Service, *, is_once: bool = False) -> None:
        """Copy a log from all its sources, in turn."""
        name, place = service.log.name, folder_name(service.log)
        own = [(service.url, False)] if service.url else []
        others = [(f"{other.rstrip('/')}/{place}", True) for other in self._others]
        copy: LogCopy | None = None
        with ExitStack() as stack:
            askers = {url: stack.enter_context(asker_of(url)) for url, _ in own + others}
            copyings: dict[str, LogCopying] = {}
            while not self._end.is_set():
                with self._naming(name, HERE):
                    copy = copy or self._opened(service, stack)
                # Where a log was read that has ended, the one that succeeds it may be by now.
                has_ended = service.log in (each.log for each in self.event.ended_verdicts)
                sources = others if has_ended else own + others
                if has_ended and not others:
                    # What was copied of it stays in its folder.
                    self._standing.pop(name, None)
                    return
                for url, is_mirror in sources if copy is not None else ():
                    copying = copyings.setdefault(url, LogCopying(copy, self.event, is_mirror))
                    with self._naming(name, url):
                        self._seen(name, copying.copy, is_seen=copying.take(askers[url]))
                if copy is not None:
                    with self._naming(name, HERE):
                        self._seen(name, copy)
                if is_once:
                    return
                self._end.wait(EVERY_S)

    def _opened(self, service: Service, stack: ExitStack) -> LogCopy:
        """Open the copy of a log, unless its service writes there itself."""
        copy = LogCopy(self.folder / folder_name(service.log), service.log, self.event)
        copy.make()
        stack.callback(Held(copy.folder).close)
        return copy

    def _seen(self, name: str, copy: LogCopy, *, is_seen: bool = False) -> None:
        before = self._standing[name]
        seen_s = int(time.time()) if is_seen else before.seen_s
        self._standing[name] = replace(
            before, size=copy.size, seen_s=seen_s, forks=tuple(copy.forks())
        )

    @contextmanager
    def _naming(self, name: str, source: str) -> Iterator[None]:
        """Name what goes wrong inside as the trouble of a source: it stops nothing else."""
        why = ""
        try:
            yield
        except DatacollectError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - a log that surprises stops no other one
            why = f"{type(error).__name__}: {error}"
        self._trouble(name, source, why)

    def _trouble(self, name: str, source: str, why: str) -> None:
        """Take note of what is the matter with a source, and say what is new of it."""
        before = self._standing[name]
        if before.troubles.get(source, "") == why:
            return
        troubles = {k: text for k, text in before.troubles.items() if k != source}
        self._standing[name] = replace(before, troubles=troubles | ({source: why} if why else {}))
        self._report(f"{name}: {source}: {why or 'is copied again'}")

    def _written(self) -> MirrorStanding:
        """Leave how the mirror is in its folder; return that."""
        standing = MirrorStanding(
            self.event.id.hex(), int(time.time()), tuple(self._standing.values())
        )
        with written_durably(self.folder / STATUS_FILE) as beside:
            beside.write_text(json.dumps(standing.to_dict(), indent=1) + "\n")
        return standing


def logs_of(event: Event) -> list[Service]:
    """Return all logs of an event, and where each is read; those of verdicts may be nowhere."""
    logs = [*event.services, *(Service("", each.log) for each in event.ended_verdicts)]
    if event.verdicts is not None:
        logs.append(Service(event.verdicts_url or "", event.verdicts))
    return logs


def asker_of(where: str) -> AbstractContextManager[Asks]:
    """Return who asks a log at an address, or in a folder."""
    return Asker(where) if "://" in where else nullcontext(Folder(Path(where)))


def require_mirrors(places: Iterable[str]) -> None:
    """Raise `ProblemError` where a folder is no mirror's."""
    for place in places:
        if "://" not in place and not Path(place).is_dir():
            raise ProblemError(
                f"{place}: must be a mirror's folder, or its address; `datacollect event mirror` "
                "makes one"
            )


def _is_news(before: dict[str, CopyStanding], now: dict[str, CopyStanding]) -> bool:
    """Return whether something has changed besides sizes and times."""
    return {k: (s.troubles, s.forks) for k, s in before.items()} != {
        k: (s.troubles, s.forks) for k, s in now.items()
    }


def _take_event(folder: Path, data: bytes) -> None:
    """Keep the event's file beside its logs; refuse a folder that has another one."""
    path = folder / EVENT_FILE
    if path.exists():
        if path.read_bytes() != data:
            raise ProblemError(f"{folder}: is the mirror of another event; name another folder")
        return
    with written_durably(path) as beside:
        beside.write_bytes(data)


def mirror_once(
    event_file: str | PathLike[str],
    folder: str | PathLike[str],
    others: Sequence[str] = (),
    report: Callable[[str], None] = lambda _: None,
) -> MirrorStanding:
    """Copy all logs of an event as far as they are now; again it goes on.

    Parameters
    ----------
    event_file, folder, others, report
        As of `Mirror`.

    Raises
    ------
    ProblemError, StoreError, NotWrittenError
        The mirror's own folder is not as it should be; what logs do is in what is returned.
    """
    with closing(Mirror(event_file, folder, others, report)) as mirror:
        return mirror.copy_once()


def mirror_on(
    event_file: str | PathLike[str],
    folder: str | PathLike[str],
    others: Sequence[str],
    ready: Callable[[], None],
    report: Callable[[str], None],
) -> None:
    """Copy all logs of an event until who calls is interrupted; see `mirror_once`."""
    with ExitStack() as stack:
        mirror = stack.enter_context(closing(Mirror(event_file, folder, others, report)))
        ready()
        mirror.copy_on()
