"""Tests of unlike kinds: each link is estimated from tests of one kind; notes name the others.

A kind is a protocol, one direction or both at once, and a number of connections. What one
connection gets, and what eight get together, are two things: their mean is neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import counted
from datacollect.measurement.outcomes import listed
from datacollect.problem.numbers import numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

_UDP = "UDP"


@dataclass(frozen=True)
class OneKind:
    """Samples of which each link has those of one kind.

    Attributes
    ----------
    samples : DataFrame
    notes : tuple of str
        What was left out, and whether links differ in kind.
    """

    samples: pd.DataFrame
    notes: tuple[str, ...]


def of_one_kind(samples: pd.DataFrame, streams: int | None = None) -> OneKind:
    """Return of each link the samples of one kind.

    Of several kinds the one counts that most links were measured with, so that links compare; UDP
    only where there is nothing else, as plans move data by TCP. Where as many links have another,
    the one with more samples counts, then the one with fewer connections.

    Parameters
    ----------
    samples : DataFrame
        With columns kind and streams, or without.
    streams : int, optional
        Only tests with this number of connections count.

    Raises
    ------
    ProblemError
        No test had this number of connections.

    Examples
    --------
    >>> import pandas as pd
    >>> samples = pd.DataFrame({"from": "a", "to": "b", "kind": "TCP", "streams": [1, 8, 1]})
    >>> of_one_kind(samples).samples.index.tolist(), of_one_kind(samples, 8).samples.index.tolist()
    ([0, 2], [1])
    """
    kinds = _kinds(samples)
    notes: list[str] = []
    if streams is not None:
        chosen = np.array([kind[1] == streams for kind in kinds], dtype=bool)
        _require_some(kinds, chosen, streams)
        notes += _links_without(samples, chosen, streams)
        samples = samples[chosen]
        kinds = [kind for kind, is_chosen in zip(kinds, chosen, strict=True) if is_chosen]
    if len(set(kinds)) < 2:
        return OneKind(samples, tuple(notes))
    pairs = list(zip(samples["from"], samples["to"], strict=True))
    rank = _ranks(kinds, pairs)
    best: dict[Any, int] = {}
    for kind, pair in zip(kinds, pairs, strict=True):
        best[pair] = min(rank[kind], best.get(pair, rank[kind]))
    kept = np.array(
        [rank[kind] == best[pair] for kind, pair in zip(kinds, pairs, strict=True)], dtype=bool
    )
    said = samples.assign(kind=kinds_in_words(samples))
    notes += _left_out(said[~kept], several=len({number for _, number in kinds}) > 1)
    notes += _links_unlike(said[kept])
    return OneKind(samples[kept], tuple(notes))


def kinds_in_words(samples: pd.DataFrame) -> list[str]:
    """Say of what kind each sample is; ``""`` where nothing is said of it.

    >>> import pandas as pd
    >>> kinds_in_words(pd.DataFrame({"kind": ["TCP", "", ""], "streams": [8, 1, None]}))
    ['TCP, 8 streams', '1 stream', '']
    """
    words = {kind: _words(kind) for kind in set(_kinds(samples))}
    return [words[kind] for kind in _kinds(samples)]


def _kinds(samples: pd.DataFrame) -> list[tuple[str, float]]:
    """Return protocol and number of connections of each sample; NaN, which equals nothing, is 0."""
    texts = [""] * len(samples)
    if "kind" in samples:
        texts = ["" if text is None or text != text else str(text) for text in samples["kind"]]
    streams = np.zeros(len(samples))
    if "streams" in samples:
        streams = np.nan_to_num(numbers_of(samples["streams"], "samples: streams"))
    return list(zip(texts, streams.tolist(), strict=True))


def _words(kind: tuple[str, float]) -> str:
    text, streams = kind
    said = f"{streams:g} stream{'' if streams == 1 else 's'}" if streams else ""
    return ", ".join(part for part in (text, said) if part)


def _ranks(
    kinds: Sequence[tuple[str, float]], pairs: Sequence[Any]
) -> dict[tuple[str, float], int]:
    """Return the place of each kind: 0 for the one that counts before all others."""
    links: dict[tuple[str, float], set[Any]] = {}
    n_samples: dict[tuple[str, float], int] = {}
    for kind, pair in zip(kinds, pairs, strict=True):
        links.setdefault(kind, set()).add(pair)
        n_samples[kind] = n_samples.get(kind, 0) + 1

    def place(kind: tuple[str, float]) -> tuple[Any, ...]:
        text, streams = kind
        is_udp = text.startswith(_UDP)
        return is_udp, -len(links[kind]), -n_samples[kind], streams or math.inf, text

    return {kind: i for i, kind in enumerate(sorted(links, key=place))}


def _require_some(kinds: Sequence[tuple[str, float]], chosen: Any, streams: int) -> None:
    if chosen.any() or not len(chosen):
        return
    known = sorted({number for _, number in kinds if number})
    there_are = " and ".join(f"{number:g}" for number in known) or "none that says how many it had"
    raise ProblemError(
        f"streams: no test had {counted(streams, 'connection')}; there are tests with "
        f"{there_are}; choose one of these, or leave streams out"
    )


def _links_without(samples: pd.DataFrame, chosen: Any, streams: int) -> list[str]:
    """Say which links have no test with this number of connections."""
    pairs = np.array([f"{a} -> {b}" for a, b in zip(samples["from"], samples["to"], strict=True)])
    without = sorted(set(pairs[~chosen]) - set(pairs[chosen]))
    if not without:
        return []
    text = (
        f"left out, as no test of theirs had {counted(streams, 'connection')}: "
        f"{counted(len(without), 'link')}, {listed(without)}"
    )
    return [text]


def _left_out(others: pd.DataFrame, *, several: bool) -> list[str]:
    """Say which tests do not count."""
    if others.empty:
        return []
    links = sorted({f"{a} -> {b}" for a, b in zip(others["from"], others["to"], strict=True)})
    counts = others["kind"].replace("", "of unknown settings").value_counts().sort_index()
    what = listed([f"{n} of {kind!r}" for kind, n in counts.items()])
    remedy = "choose with --streams (streams, in Python)" if several else "give those alone"
    text = (
        "left out, since a mean over unlike kinds of tests describes none of them: "
        f"{counted(len(others), 'test')} of {counted(len(links), 'link')} ({listed(links, 3)}): "
        f"{what}; {remedy} for estimates of these"
    )
    return [text]


def _links_unlike(kept: pd.DataFrame) -> list[str]:
    """Say that links differ in kind, where they do."""
    of_link = kept.groupby(["from", "to"])["kind"].first()
    if of_link.nunique() < 2:
        return []
    counts = of_link.replace("", "of unknown settings").value_counts()
    what = listed([f"{counted(int(n), 'link')} by {kind!r}" for kind, n in counts.items()])
    return [
        f"links were measured by unlike tests, so their bandwidths may not be comparable: {what}"
    ]
