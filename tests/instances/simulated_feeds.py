"""Feeds in a world of their own: source, sender, wire, receiver and its disk, all simulated.

Nothing of it waits or is threaded; what happens next is drawn. What the source makes is known by
its place: byte ``i`` is ``content(i)``.
"""

from __future__ import annotations

import errno
import json
import random
from collections.abc import Sequence
from contextlib import suppress

from datacollect.errors import RefusedError, StoreError
from datacollect.feeds.formats import frames
from datacollect.feeds.formats.feed_file import HOLES, PART, REPORT
from datacollect.feeds.formats.frames import FrameError, Hello, Lines, hello_of, welcome_of
from datacollect.feeds.formats.report import FeedReport, FeedStopped
from datacollect.feeds.receiver.kept_feed import kept_feed
from datacollect.feeds.receiver.taking import Taking
from datacollect.feeds.sender.core import SenderCore
from datacollect.feeds.sender.store import Begun, Memory

NAME, USER = "scan7", "ed25519:user"
PATTERN = bytes(1 + (i * 37) % 251 for i in range(4096))  # no zeros: those are holes


def content(first: int, stop: int) -> bytes:
    """What a source makes between two places."""
    return b"".join(PATTERN[i % 4096 : i % 4096 + 1] for i in range(first, stop))


class Killed(BaseException):
    """The process is gone, in the middle of what it did."""


class Mishaps:
    """What goes wrong with the next operations on a disk, or in a store."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.kill_in = 0  # at the n-th operation from now; 0: at none
        self.is_full = False

    def before(self, *, grows: bool = True) -> bool:
        """Whether the process is killed, by now; false: only once the operation is done."""
        if self.is_full and grows:
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.kill_in:
            self.kill_in -= 1
            if not self.kill_in:
                if self._rng.random() < 0.5:
                    raise Killed
                return True
        return False


class Disk:
    """A folder: what was written is in memory, what was synced outlasts a loss of power."""

    def __init__(self, rng: random.Random, mishaps: Mishaps) -> None:
        self._rng, self._mishaps = rng, mishaps
        self.files: dict[str, bytearray] = {}
        self._kept: dict[str, bytes] = {}

    def exists(self, name):
        return name in self.files

    def size(self, name):
        return len(self.files[name]) if name in self.files else None

    def read(self, name):
        return bytes(self.files[name]) if name in self.files else None

    def write(self, name, offset, blocks):
        kills = self._mishaps.before()
        data = b"".join(map(bytes, blocks))
        if kills:
            data = data[: self._rng.randrange(len(data) + 1)]
        file = self.files.setdefault(name, bytearray())
        file.extend(bytes(max(offset + len(data) - len(file), 0)))
        file[offset : offset + len(data)] = data
        if kills:
            raise Killed

    def truncate(self, name, n_bytes):
        self._then(self._mishaps.before(), lambda: self._resize(name, n_bytes))

    def _resize(self, name, n_bytes):
        file = self.files.setdefault(name, bytearray())
        file.extend(bytes(max(n_bytes - len(file), 0)))
        del file[n_bytes:]

    def sync(self, name, *, done_bytes=0):
        kills = self._mishaps.before(grows=False)
        self._kept[name] = bytes(self.files.setdefault(name, bytearray()))
        if kills:
            raise Killed

    def put(self, name, data):
        def put():
            self.files[name], self._kept[name] = bytearray(data), data

        self._then(self._mishaps.before(), put)

    def rename(self, name, to):
        def rename():
            if to in self.files and self.files[to] is not self.files[name]:
                raise FileExistsError(to)
            self.files[to], self._kept[to] = self.files[name], self._kept[name]
            if self._rng.random() < 0.8:  # else it has both names still
                self.files.pop(name), self._kept.pop(name)
            elif self._mishaps.kill_in or self._rng.random() < 0.5:
                raise Killed
            else:
                self.files.pop(name), self._kept.pop(name)

        self._then(self._mishaps.before(grows=False), rename)

    def _then(self, kills, do):
        do()
        if kills:
            raise Killed

    def lose_power(self):
        """Keep what was synced; of what was not, anything may be there."""
        same = {id(file): file for file in self.files.values()}
        left = {}
        for key, file in same.items():
            names = [name for name, each in self.files.items() if id(each) == key]
            kept = next((self._kept[name] for name in names if name in self._kept), None)
            if kept is None:
                continue
            found = bytearray(kept)
            if names[0].endswith((PART, HOLES)) and self._rng.random() < 0.5:
                more = bytes(file[len(kept) :])
                found += bytes(self._rng.choice((byte, 0)) for byte in more)
            left |= dict.fromkeys(names, found)
        self.files = left


class Spill(Memory):
    """Outlasts its process: each call is carried out wholly, or not at all."""

    def __init__(self, mishaps: Mishaps) -> None:
        super().__init__()
        self._mishaps = mishaps
        self._runs = []

    def _carried_out(self, do, *, grows=True):
        try:
            kills = self._mishaps.before(grows=grows)
        except OSError:
            raise StoreError("the disk is full") from None
        do()
        if kills:
            raise Killed

    def add(self, messages, tail, *, ends):
        def add():
            Memory.add(self, messages, tail, ends=ends)
            self.begun.made += len(messages)
            self.begun.made_bytes += sum(len(each.content) for each in messages)
            self.begun.tail, self.begun.is_ended = tail, ends

        self._carried_out(add)

    def drop(self, run, tail, *, ends):
        def drop():
            self.begun.made += run.n
            self.begun.made_bytes += run.n_bytes
            self.begun.tail, self.begun.is_ended = tail, ends
            self._note(run)

        self._carried_out(drop)

    def drop_kept(self, run):
        def drop():
            Memory.drop_kept(self, run)
            self._note(run)

        self._carried_out(drop)

    def _note(self, run):
        self.begun.lost += run.n
        self.begun.lost_bytes += run.n_bytes
        self._runs.append(run)

    def end(self):
        def end():
            self.begun.is_ended, self.begun.tail = True, b""

        self._carried_out(end)

    def release(self, number):
        def release():
            Memory.release(self, number)
            self._runs = [run for run in self._runs if run.stop > number]
            self.begun.written = number

        self._carried_out(release, grows=False)

    def reopened(self):
        """Return what a process finds that goes on."""
        self.begun = Begun(**vars(self.begun) | {"missing": [*self._runs]})
        if not self.begun.is_new and not self.begun.is_ended:
            self.begun.restarts += 1
        return self


class Clock:
    """A steady clock of one process; processes of another host have other ones."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self.boot = world, rng.choice(("one", "two", "three"))
        self.base_ns = 10**18 + rng.randrange(10**12)

    def now_ns(self):
        return self.base_ns + self._world.now_ns


class World:
    """A feed from its source to the receiver's disk.

    Parameters
    ----------
    seed : int
    has_spill : bool
        Else a sender that is killed has lost what it kept.
    """

    def __init__(self, seed: int, *, has_spill: bool = True) -> None:
        self.rng = rng = random.Random(seed)
        self.now_ns = 0
        self.has_spill = has_spill
        self.message_bytes = rng.choice((1, 3, 16, 100))
        self.buffer_bytes = self.message_bytes * rng.choice((1, 4, 30, 1000))
        self.when_full = rng.choice(("stop", "drop-new", "drop-old"))
        self.sender_mishaps, self.receiver_mishaps = Mishaps(rng), Mishaps(rng)
        self.disk = Disk(rng, self.receiver_mishaps)
        self.spill = Spill(self.sender_mishaps) if has_spill else None
        self.ended: FeedReport | None = None
        self.is_sender_lost = self.was_full = False
        self.begin_sender()
        self.receiver_clock = Clock(self, rng)
        self.disconnect()

    # Processes -------------------------------------------------------------------------------

    def begin_sender(self):
        store = self.spill.reopened() if self.spill else Memory()
        self.stream = store.begun.stream
        self.sender_clock = Clock(self, self.rng)
        self.sender = SenderCore(store, self.message_bytes, self.buffer_bytes, self.when_full)

    def kill_sender(self):
        self.sender_mishaps.kill_in = 0
        self.disconnect()
        if self.has_spill:
            self.begin_sender()
        else:
            self.is_sender_lost = True

    def kill_receiver(self):
        self.receiver_mishaps.kill_in = 0
        self.disconnect()
        self.receiver_clock = Clock(self, self.rng)

    def disconnect(self):
        self.taking: Taking | None = None
        self.up, self.down = b"", b""
        self.is_greeted = False
        self.lines = Lines()

    # What happens ----------------------------------------------------------------------------

    def make(self):
        """The source makes something; after a restart it goes on where it was."""
        if self.sender.is_ended or self.is_sender_lost:
            return
        first = self.sender.taken_bytes
        block = content(first, first + self.rng.randrange(3 * self.message_bytes + 2))
        with suppress(FeedStopped):
            self.sender.write(block, self.sender_clock.now_ns())
        assert self.sender.taken_bytes == first + len(block)
        assert self.sender.behind_s(self.sender_clock.now_ns()) >= 0

    def end(self):
        if not self.is_sender_lost:
            with suppress(FeedStopped):
                self.sender.end(self.sender_clock.now_ns())

    def connect(self):
        if self.taking is not None or self.is_sender_lost or self.ended:
            return
        clock = self.sender_clock
        mine = Hello(
            NAME, self.stream, "tcp", 1e6, self.message_bytes, 0.02, clock.boot, clock.base_ns
        )
        hello = hello_of(mine.line().strip())
        kept = kept_feed(self.disk, hello, USER, "begun")
        self.taking = Taking(kept, hello, self.receiver_clock, lambda _: None)
        self.down += self.taking.welcome()

    def send(self):
        if self.is_greeted and self.sender.has_something:
            blocks = self.sender.frames(self.rng.randrange(1, 400))
            self.up += b"".join(blocks)
            if self.rng.random() < 0.1:
                self.up += frames.time_frame(self.sender_clock.now_ns())

    def deliver(self):
        if self.taking is None or not self.up:
            return
        n = self.rng.randrange(1, len(self.up) + 1)
        data, self.up = self.up[:n], self.up[n:]
        self.down += self.taking.take(data, "ended")

    def keep(self):
        if self.taking is not None and self.taking.has_news:
            self.down += self.taking.keep(*self.taking.snapshot(), telling=True)

    def answer(self):
        if not self.down or self.is_sender_lost:
            return
        n = self.rng.randrange(1, len(self.down) + 1)
        data, self.down = self.down[:n], self.down[n:]
        for tree in self.lines.take(data):
            if "ended" in tree:
                self.ended = FeedReport.from_dict(tree["ended"])
            elif not self.is_greeted:
                welcome = welcome_of(tree)
                self.sender.connected(welcome.next, welcome.written)
                self.is_greeted = True
            elif "written" in tree:
                self.sender.told_written(tree["written"])

    def step(self, do):
        """Carry something out; who is killed in it begins again."""
        self.now_ns += self.rng.randrange(10**7)
        at_sender = do in (self.make, self.end, self.send, self.answer)
        try:
            do()
        except Killed:
            self.kill_sender() if at_sender else self.kill_receiver()
        except OSError:
            assert not at_sender
            self.disconnect()  # and the next one begins with what is on the disk

    def run(self, n_steps: int):
        """Let anything happen; then all is well again, until the feed has ended."""
        rng = self.rng
        usual: Sequence = [self.make, self.send, self.deliver, self.keep, self.answer, self.connect]
        for _ in range(n_steps):
            if self.ended:
                break
            draw = rng.random()
            if draw < 0.90:
                self.step(rng.choice(usual))
            elif draw < 0.92:
                self.disconnect()
            elif draw < 0.935:
                self.sender_mishaps.kill_in = rng.randrange(1, 6)
            elif draw < 0.95:
                self.receiver_mishaps.kill_in = rng.randrange(1, 6)
            elif draw < 0.955:
                self.kill_sender()
            elif draw < 0.965:
                self.kill_receiver()
            elif draw < 0.97:
                self.disk.lose_power()
                self.kill_receiver()
            elif draw < 0.98:
                self.receiver_mishaps.is_full = rng.random() < 0.5
            elif draw < 0.99 and self.has_spill:
                self.sender_mishaps.is_full = rng.random() < 0.5
                self.was_full |= self.sender_mishaps.is_full
            elif draw > 0.999:
                self.step(self.end)
        for each in (self.sender_mishaps, self.receiver_mishaps):
            each.kill_in, each.is_full = 0, False
        for turn in range(20_000):
            if self.ended or self.is_sender_lost:
                return
            self.step(self.end if turn == 0 else usual[1 + turn % 5])
        raise AssertionError("the feed does not end")

    # What has come of it ---------------------------------------------------------------------

    def holes(self) -> list[tuple[int, int]]:
        """Return the places of what is listed as missing."""
        n_bytes = self.report().more.get("holes_bytes", 0)
        rows = self.disk.files.get(f"{NAME}{HOLES}", b"")[:n_bytes].decode().splitlines()[1:]
        numbers = [tuple(map(int, row.split(","))) for row in rows]
        assert all(offset == first * self.message_bytes for first, _, offset, _ in numbers), (
            "a hole begins where its message does"
        )
        return [(offset, n) for _, _, offset, n in numbers]

    def report(self) -> FeedReport:
        """Return the report on the disk."""
        return FeedReport.from_dict(json.loads(self.disk.files[f"{NAME}{REPORT}"]))

    def judge(self):
        """What is in the file and what is listed as missing is all that was made, byte for byte."""
        if f"{NAME}{REPORT}" not in self.disk.files:
            assert self.is_sender_lost
            return
        report = self.report()
        counts = report.counts
        whole = bool(report.ended)
        assert whole or self.is_sender_lost
        file = self.disk.files.get(NAME if whole else f"{NAME}{PART}", b"")
        if whole:
            assert len(file) == counts.made_bytes
            assert f"{NAME}{PART}" not in self.disk.files
            assert counts.made_bytes == self.sender.counts.made_bytes
            assert counts.made == self.sender.counts.made
            if self.buffer_bytes >= 1000 * self.message_bytes and not self.was_full:
                assert counts.is_whole, "kills alone lose nothing"
        listed, at = 0, 0
        for offset, n in [*self.holes(), (counts.made_bytes, 0)]:
            assert offset >= at, "each is listed once, in order"
            assert bytes(file[at:offset]) == content(at, offset)
            assert not any(file[offset : offset + n]), "nothing stands in a hole"
            listed, at = listed + n, offset + n
        assert counts.received + counts.lost == counts.made
        assert counts.received_bytes + listed == counts.made_bytes
        assert listed == counts.lost_bytes
        assert report.delays.n <= counts.received


def judged(seed: int, *, has_spill: bool = True, n_steps: int = 300) -> World:
    """Return a world in which a feed has come to its end, and was judged."""
    world = World(seed, has_spill=has_spill)
    world.run(n_steps)
    world.judge()
    return world


__all__ = ["FrameError", "RefusedError", "World", "content", "judged"]
