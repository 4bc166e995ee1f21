"""Schedule of what pulls in slots have moved, over all their starts, which can be checked.

Each move is a line of a file, with its time; from these the schedule is made when a start ends.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from datacollect.files.durability import name_durably
from datacollect.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from datacollect.transfer.pull.core.todo import SourceWork
    from datacollect.transfer.pull.slots.slot_planning import HopTask

MOVES, PROBLEM, SCHEDULE = "slots.jsonl", "slots-problem.json", "slots-schedule.json"
# What comes so early after a slot was sent in it.
LATE_PART = 0.05


class Happened:
    """The record of a folder's moves, on one grid of slots; for many threads.

    Parameters
    ----------
    folder : Path
        Of the state.
    slot_s : float
    """

    def __init__(self, folder: Path, slot_s: float) -> None:
        self._folder, self._slot_s = folder, slot_s
        self._lock = threading.Lock()
        self._head: dict[str, Any] | None = None
        self._work: Mapping[str, SourceWork] = {}
        rows = self._rows()
        head = next(rows, None)
        if head is not None and head.get("slot_s") == slot_s and "problem" in head:
            self._head = head

    def _rows(self) -> Iterator[dict[str, Any]]:
        path = self._folder / MOVES
        if not path.is_file():
            return
        with path.open(encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):  # the last may be torn
                    yield json.loads(line)

    def begins_s(self, now_s: float) -> float:
        """Return when the grid begins, in seconds since 1970: with the first start, or now."""
        return now_s if self._head is None else float(self._head["begins_s"])

    def planned(self, problem: Problem, begins_s: float, work: Mapping[str, SourceWork]) -> None:
        """Note what is to be moved; where it is more than was, a new record begins."""
        self._work = work
        every = zip(problem.names, problem.backlog_bytes.tolist(), strict=True)
        backlogs = {name: n_bytes for name, n_bytes in every if n_bytes}
        if self._head is not None:
            before = self._head["backlog_bytes"]
            if all(before.get(name) == n_bytes for name, n_bytes in backlogs.items()):
                return
        self._head = {
            "slot_s": self._slot_s,
            "begins_s": begins_s,
            "backlog_bytes": backlogs,
            "problem": problem.to_dict(),
        }
        (self._folder / MOVES).write_text(json.dumps(self._head) + "\n", encoding="utf-8")

    def moved(self, task: HopTask, piece: int, begun_s: float) -> None:
        """Note that a hop has moved a piece, in a slot that began at an instant since 1970."""
        work = self._work[task.source]
        row = [
            *(round(begun_s, 3), round(time.time(), 3), task.source, task.tail, task.head),
            *(work.starts[piece], work.sizes[piece]),
        ]
        with self._lock, (self._folder / MOVES).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"move": row}) + "\n")

    def write(self) -> None:
        """Write the problem and the schedule of all moves so far, where all has come."""
        if self._head is None:
            return
        problem = Problem.from_dict(self._head["problem"])
        moves = [row["move"] for row in self._rows() if "move" in row]
        begins_s, destination = float(self._head["begins_s"]), problem.destination
        transfers = list(_transfers(moves, begins_s, self._slot_s, destination))
        makespan_s = max((each["finish_s"] for each in transfers), default=0.0)
        tree = {
            "format": "datacollect-schedule/1",
            "method": "coordinated",
            "destination": destination,
            "makespan_s": makespan_s,
            "lower_bound_s": 0.0,
            "slot_s": self._slot_s,
            "chunk_s": None,
            "solver": "what happened",
            "problem_sha256": problem.sha256,
            "transfers": transfers,
        }
        for name, each in ((PROBLEM, problem.to_dict()), (SCHEDULE, tree)):
            beside = self._folder / f"{name}.new"
            beside.write_text(json.dumps(each, indent=1), encoding="utf-8")
            name_durably(beside, self._folder / name)


def _transfers(
    moves: Iterable[list[Any]], begins_s: float, slot_s: float, end: str
) -> Iterator[dict[str, Any]]:
    """Yield the transfers of pieces that have come; those of a hop side by side in a slot are one.

    >>> moves = [[0.0, 3.0, "S", "S", "K", 0, 5], [0.0, 4.0, "S", "S", "K", 5, 5]]
    >>> moves += [[10.0, 15.0, "S", "K", "D", 0, 5]]
    >>> for each in _transfers(moves, 0.0, 10.0, "D"):
    ...     print(each["route"], each["hop"], each["bytes"], each["start_s"])
    ['S', 'K', 'D'] 0 5 0.0
    ['S', 'K', 'D'] 1 5 10.0
    """

    def slot_of(begun_s: float, time_s: float) -> int:
        """Return the slot in which it was sent, or the later one in which it came."""
        begun, came = ((each - begins_s) / slot_s for each in (begun_s, time_s))
        return max(round(begun), math.floor(came - LATE_PART), 0)

    stored: dict[tuple[str, int, str], int] = {}
    rows: dict[tuple[str, tuple[str, ...], int, int], list[tuple[int, int]]] = defaultdict(list)
    came: dict[tuple[str, int], tuple[tuple[str, ...], int, list[int]]] = {}
    for begun_s, time_s, source, tail, head, offset, n_bytes in moves:
        slot = slot_of(begun_s, time_s)
        if head != end:
            stored[source, offset, head] = slot
        elif (source, offset) not in came:
            slots = [slot]
            route: tuple[str, ...] = (tail, end)
            if tail != source and (source, offset, tail) in stored:
                route, slots = (source, tail, end), [stored[source, offset, tail], slot]
            came[source, offset] = route, n_bytes, slots
    for (source, offset), (route, n_bytes, slots) in sorted(came.items()):
        for hop, slot in enumerate(slots):
            parts = rows[source, route, hop, slot]
            if parts and sum(parts[-1]) == offset:
                parts[-1] = (parts[-1][0], parts[-1][1] + n_bytes)
            else:
                parts.append((offset, n_bytes))
    for (source, route, hop, slot), parts in rows.items():
        for offset, n_bytes in parts:
            yield {
                "source": source,
                "route": list(route),
                "hop": hop,
                "offset_bytes": offset,
                "bytes": n_bytes,
                "start_s": slot * slot_s,
                "finish_s": (slot + 1) * slot_s,
                "streams": 1,
            }
