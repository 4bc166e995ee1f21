"""One feed from its source to its end, and what is said of it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.feeds.formats.report import Delays, FeedCounts, FeedStopped
from datacollect.feeds.sender.feed import send
from datacollect.feeds.sender.source import generated_blocks, opened_source, read_blocks
from datacollect.files.units import counted, format_bytes, format_rate, format_short_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from datacollect.feeds.formats.feed_file import FeedFile
    from datacollect.feeds.sender.feed import Feed
    from datacollect.feeds.sender.udp_feed import UdpFeed

STDIN = 0
LOOK_S = 0.2


class FeedRun:
    """Sends what a source makes.

    Parameters
    ----------
    feed : FeedFile
    source : Path or None
        What is read; None: standard input.
    generate_s : float or None
        Instead: how long data are made up.
    tell : callable
        Takes lines for people.

    Raises
    ------
    ProblemError
        There is no such source.
    """

    def __init__(
        self,
        feed: FeedFile,
        source: Path | None,
        generate_s: float | None,
        tell: Callable[[str], None],
    ) -> None:
        self.feed, self._tell = feed, tell
        self._generate_s = generate_s
        self._fd = STDIN if source is None else opened_source(source)
        self._out: Feed | UdpFeed | None = None
        self.behind_s = 0.0
        self.why: str | None = None
        self._is_stopped = False

    def begin(self) -> None:
        """Connect, where that is possible at once.

        Raises
        ------
        ProblemError
            What files say does not fit.
        """
        self._out = send(self.feed, tell=self._tell)

    def run(self) -> None:
        """Send the source to its end; an interruption ends it, or leaves it to its spill.

        Raises
        ------
        ProblemError
            As `begin`, which it does where that was not done.
        """
        if self._out is None:
            self.begin()
        assert self._out is not None
        out = self._out
        try:
            self._wait_for_place(out)
            if out.had_ended:
                self._tell("the source of this feed has ended; sending what is left")
            else:
                self._write(out)
            out.close()
        except FeedStopped as error:
            self.why = str(error)
            with suppress(FeedStopped):
                out.close()
        except KeyboardInterrupt:
            self._interrupted(out)
        except BaseException:
            out.abandon()
            raise

    def stop(self) -> None:
        """Have it end before its source, from any thread."""
        self._is_stopped = True

    def _interrupted(self, out: Feed | UdpFeed) -> None:
        """End without the source: by and by where nothing would be kept."""
        if self.feed.spill is not None:
            out.abandon()
            self.why = f"interrupted; what was not sent is kept in {self.feed.spill}"
            return
        self._tell("interrupted: sending what was made; interrupt again to drop it")
        try:
            out.close()
        except FeedStopped as error:
            self.why = str(error)
        except KeyboardInterrupt:
            out.abandon()
            self.why = "interrupted before all was sent"

    def _wait_for_place(self, out: Feed | UdpFeed) -> None:
        """Have a source that can be read again wait until it is known where it goes on."""
        if self._generate_s is None and not stat.S_ISREG(os.fstat(self._fd).st_mode):
            return
        while not out.is_placed(LOOK_S):
            if self._is_stopped:
                raise KeyboardInterrupt

    def _write(self, out: Feed | UdpFeed) -> None:
        blocks = self._blocks(out.goes_on_at_bytes)
        if out.goes_on_at_bytes:
            self._tell(f"continuing after {format_bytes(out.goes_on_at_bytes)}")
        for block in blocks:
            self.behind_s = out.write(block)
            if self._is_stopped:
                raise KeyboardInterrupt

    def _blocks(self, skip_bytes: int) -> Iterator[bytes] | Iterator[memoryview]:
        rate = self.feed.rate_bytes_per_s
        if self._generate_s is not None:
            size = self.feed.message_bytes
            return generated_blocks(rate, self._generate_s, skip_bytes, size)
        return read_blocks(self._fd, rate, skip_bytes)

    # What is said of it ----------------------------------------------------------------------

    @property
    def counts(self) -> FeedCounts:
        """Return what has become of its messages so far."""
        return FeedCounts() if self._out is None else self._out.counts

    @property
    def delays(self) -> Delays:
        """Return how late they came so far."""
        return Delays() if self._out is None else self._out.delays

    @property
    def is_ended(self) -> bool:
        """Return whether the receiver has it to its end."""
        return self._out is not None and self._out.report is not None

    @property
    def is_whole(self) -> bool:
        """Return whether it has ended, and nothing is missing."""
        return self.is_ended and self.counts.is_whole

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of it, as JSON."""
        clock = "" if self._out is None else self._out.clock
        return {
            "name": self.feed.name,
            "to": self.feed.to.name,
            "complete": self.is_whole,
            "ended": self.is_ended,
            "why": self.why,
            "counts": self.counts.to_dict(),
            "delay": self.delays.to_dict(),
            "clock": clock,
        }

    def facts(self) -> list[tuple[str, str]]:
        """Return what people are told at its end, by name."""
        counts, delays = self.counts, self.delays
        state = "whole" if self.is_whole else "not whole"
        found = [
            ("feed", f"{self.feed.name} to {self.feed.to.name}: {state}"),
            ("made", f"{counted(counts.made, 'message')}, {format_bytes(counts.made_bytes)}"),
            ("received", f"{counted(counts.received, 'message')}, {counts.late} of them late"),
        ]
        missing = counts.made - counts.received
        listed = f"{counts.lost} of them listed as holes" if self.is_ended else "so far"
        found.append(("missing", f"{counted(missing, 'message')}, {listed}" if missing else "none"))
        if delays.n:
            words = ", ".join(
                f"{what} {format_short_duration(float(f'{delay_s:.3g}'))}"
                for what, delay_s in (
                    ("half within", delays.quantile(0.5)),
                    ("99 % within", delays.quantile(0.99)),
                    ("all within", delays.largest_s),
                )
            )
            clock = "" if self._out is None else self._out.clock
            found.append(("delay", f"{words}; by {clock}"))
        for name, n in (("reconnections", counts.reconnections), ("restarts", counts.restarts)):
            if n:
                found.append((name, str(n)))
        if self.why is not None:
            found.append(("why", self.why))
        return found

    def row(self) -> tuple[str, ...]:
        """Return a line of a table: name, rate, made, received, missing, behind, delay."""
        counts, delays = self.counts, self.delays
        worst = f"{delays.quantile(0.99):.3f} s" if delays.n else "-"
        return (
            self.feed.name,
            format_rate(self.feed.rate_bytes_per_s),
            format_bytes(counts.made_bytes),
            format_bytes(counts.received_bytes),
            str(counts.lost),
            f"{self.behind_s:.2f} s",
            worst,
        )


HEADINGS = ("feed", "rate", "made", "received", "lost", "behind", "99 % within")
