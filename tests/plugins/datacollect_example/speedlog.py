"""A reader: logs of a meter of our own, as text or as JSON.

A line of text is ``speedlog TIME FROM TO MBIT_PER_S``, the time in seconds since 1970; a document
has the same as ``speedlog``, a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.measurement.outcomes import Outcome, Sample
from datacollect.measurement.readers import Reader, TableKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DURATION_S = 10.0


class _Speedlog(Reader):
    def reads_document(self, tree: Any) -> bool:
        return isinstance(tree, dict) and "speedlog" in tree

    def outcome(self, tree: Any, place: str, names: Mapping[str, str] | None) -> Outcome:
        return _outcome([str(word) for word in tree["speedlog"]], place, names or {})

    def reads_text(self, text: str) -> bool:
        return text.startswith("speedlog ")

    def outcomes(self, text: str, place: str, names: Mapping[str, str] | None) -> Iterable[Outcome]:
        for number, line in enumerate(text.splitlines(), start=1):
            yield _outcome(line.split()[1:], f"{place}, line {number}", names or {})


def _outcome(words: list[str], place: str, names: Mapping[str, str]) -> Outcome:
    if len(words) != 4:
        raise ProblemError(f"{place}: must be a time, two hosts and a rate, got {len(words)} words")
    time_s, rate_bytes_per_s = float(words[0]), float(words[3]) * 125_000
    ends = [names.get(word, word) for word in words[1:3]]
    n_bytes = round(rate_bytes_per_s * _DURATION_S)
    sample = Sample(*ends, time_s, rate_bytes_per_s, n_bytes, _DURATION_S, 1, "TCP")
    return Outcome(place, (sample,))


SPEEDLOG = _Speedlog(
    name="speedlog",
    text="logs of speedlog",
    document="a speedlog",
    tables=(
        TableKind(
            "speedlog",
            {"at": "time_s", "sender": "from", "receiver": "to", "speed": "bandwidth_mbit_per_s"},
        ),
    ),
)
