"""Metrics of a pull, from its story."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from datacollect.net.bounded_rows import BoundedRows
from datacollect.net.metrics import counter, gauge, one

if TYPE_CHECKING:
    from datacollect.net.metrics import Family
    from datacollect.transfer.pull.progress.story import PullStory

# Routes, and sources that are stuck, with labels of their own.
MOST_ROUTES, MOST_SOURCES = 400, 300
BY_ROUTE = ("collection", "source", "via")


class _Sum:
    """A number that is added up."""

    def __init__(self) -> None:
        self.n = 0


def pull_families(story: PullStory) -> list[Family]:
    """Return what a pull has to tell."""
    with story.lock:
        far, history, answer = story.far, story.history, story.answer
        name, begun_s = story.collection, story.begun_s
        by_route = BoundedRows(_Sum, MOST_ROUTES)
        for (source, *relays, _), n_bytes in far.routes.items():
            by_route.of(name, source, ",".join(relays)).n += n_bytes
        stuck = BoundedRows(_Sum, MOST_SOURCES)
        for source in far.troubles:
            stuck.of(source).n += 1
        left_s = story.pace.left_s(far.all_bytes - far.n_bytes)
        now_s = time.time()
        end_s: dict[str, float] = {}
        if left_s is not None:
            end_s |= dict(zip(("low", "high"), left_s, strict=True))
        planned: dict[str, float | None] = {"expected": history.predicted_s}
        if history.between_s is not None:
            planned |= dict(zip(("low", "high"), history.between_s, strict=True))
        return [
            gauge(
                "datacollect_pull_info",
                "Always 1: which collection, where to, by which method.",
                ("collection", "destination", "method"),
                {(name, story.destination, history.method): 1},
            ),
            one("datacollect_pull_start_time_seconds", "When it was started.", begun_s),
            counter(
                "datacollect_pull_bytes",
                "New bytes of files that have come and were verified, by source and relays.",
                BY_ROUTE,
                {labels: row.n for labels, row in by_route.items()},
            ),
            counter(
                "datacollect_pull_refetched_bytes",
                "Bytes that were received twice, by the reason.",
                ("kind",),
                {(why,): n for why, n in far.refetched.items()},
            ),
            counter(
                "datacollect_pull_events",
                "What went wrong with connections, files and sources.",
                ("kind",),
                {(words,): n for words, n in story.counts.items()},
            ),
            one("datacollect_pull_done_bytes", "Bytes that are there and verified.", far.n_bytes),
            one("datacollect_pull_all_bytes", "Bytes of all that is listed.", far.all_bytes),
            one("datacollect_pull_done_files", "Files that are there and verified.", far.n_files),
            one("datacollect_pull_all_files", "All files that are listed.", far.all_files),
            gauge(
                "datacollect_pull_sources",
                "Sources that are not listed to their end yet, or were given up.",
                ("kind",),
                {("awaited",): len(far.awaited), ("given up",): len(story.given_up)},
            ),
            gauge(
                "datacollect_pull_stuck",
                "1: nothing arrives from that source at present.",
                ("source",),
                {labels: row.n for labels, row in stuck.items()},
            ),
            one(
                "datacollect_pull_last_byte_time_seconds",
                "When something last arrived; before that, when it was started.",
                story.moved_s or begun_s,
            ),
            gauge(
                "datacollect_pull_planned_end_time_seconds",
                "When it was planned to end; low and high: in eight of ten cases.",
                ("bound",),
                {(k,): begun_s + end for k, end in planned.items() if end is not None},
            ),
            gauge(
                "datacollect_pull_expected_end_time_seconds",
                "When it ends at the highest and the lowest of its recent rates.",
                ("bound",),
                {(k,): now_s + end for k, end in end_s.items()},
            ),
            one(
                "datacollect_pull_complete",
                "1: it has ended, and all is there; 0: it has ended, and something is missing.",
                None if answer is None else int(answer["complete"]),
            ),
        ]
