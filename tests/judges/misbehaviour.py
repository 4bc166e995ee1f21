"""Misbehaviours of web servers: a grammar of one response, and the behaviours that it gives.

A behaviour is a word from each axis. The first word of each is what RFC 9110 (2022) wants; the
others are deviations, most of them seen with servers that people move bulk data from.
`enumerate_behaviours` gives all that deviate in one place, then in two, then some in three.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import combinations, product

# Refusals, with the headers that come with them.
BUSY = {
    "408": (408, ()),
    "425": (425, ()),
    "429": (429, ()),
    "429 in 1 s": (429, (("Retry-After", "1"),)),
    "429 in days": (429, (("Retry-After", "999999"),)),
    "429 at a date": (429, (("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"),)),
    "429 garbage": (429, (("Retry-After", "soon; -3"),)),
    "500": (500, ()),
    "502": (502, ()),
    "503": (503, ()),
    "503 in 1 s": (503, (("Retry-After", "1"),)),
    "504": (504, ()),
}
REFUSALS = {
    **BUSY,
    "400": (400, ()),
    "401": (401, (("WWW-Authenticate", 'Basic realm="data"'),)),
    "403": (403, ()),
    "404": (404, ()),
    "410": (410, ()),
    "204": (204, ()),
    "304": (304, ()),
}
AXES = {
    # "ranges": 206, 200 or 416 as the request wants. "deaf": it does not look at If-Range.
    "status": (
        *("ranges", "deaf", "whole", "200 for a part", "206 for all", "416", "multipart"),
        *("100 first", "103 first", *REFUSALS),
    ),
    "content_range": (
        *("right", "absent", "another range", "a lying range", "another total", "a smaller total"),
        *("total 0", "total *", "malformed", "given twice", "other units"),
    ),
    "length": (
        *("right", "absent", "chunked", "chunked without end", "too large", "too small"),
        *("given twice", "contradicting", "malformed"),
    ),
    "validator": (
        *("strong", "weak", "none", "modified", "always new", "nodes", "modified always new"),
    ),
    "encoding": ("none", "identity", "gzip", "gzip of the part", "stored", "lying"),
    "body": (
        *("right", "shifted", "zeros", "other version", "html", "page", "replaced", "regrown"),
        *("nodes differ", "empty", "one byte", "capped", "short", "long", "endless", "compressed"),
        *("error JSON", "error XML", "error text", "pointer"),
    ),
    # What Content-Type says: what is so, or what programs say of all that they send.
    "type": ("right", "data", "text"),
    # Of what answers for all names: how many of a server's names it answers for.
    "names": ("all", "half"),
    "redirect": (
        *("none", "301", "302", "303", "307", "308", "login", "loop", "nowhere", "elsewhere"),
        *("insecure", "another scheme", "ten times"),
    ),
    "timing": (
        *("prompt", "drip", "late", "trickle", "silent", "stall", "reset", "closed", "noise"),
        *("endless head", "endless headers"),
    ),
    # How many requests for a file are answered otherwise, by the rule, before or after.
    "turn": ("always", "recovers 1", "recovers 3", "breaks 1", "breaks 2"),
}
# Documents that stand for all names: a page to log in, an error, a pointer to what is elsewhere.
ONE_FOR_ALL = ("page", "error JSON", "error XML", "error text", "pointer")
# A line that never ends, and lines without end.
HEADS_WITHOUT_END = ("endless head", "endless headers")
WITHOUT_HEAD = ("silent", "closed", "noise", *HEADS_WITHOUT_END)
HOW_MANY_OF_THREE = 1200


@dataclass(frozen=True)
class Behaviour:
    """Behaviour of a server on requests for one file.

    Each attribute is a word of its axis in `AXES`. "recovers 3": the first three requests are
    answered by this rule, those after them as RFC 9110 wants; "breaks 2": the other way round.
    """

    status: str = "ranges"
    content_range: str = "right"
    length: str = "right"
    validator: str = "strong"
    encoding: str = "none"
    body: str = "right"
    type: str = "right"
    names: str = "all"
    redirect: str = "none"
    timing: str = "prompt"
    turn: str = "always"

    def __post_init__(self) -> None:
        for axis, words in AXES.items():
            if getattr(self, axis) not in words:
                raise ValueError(f"{axis} must be one of {words}, got {getattr(self, axis)!r}")

    @property
    def deviations(self) -> dict[str, str]:
        """The words that are not the first of their axis, by axis."""
        return {name: word for name, word in self._words() if word != AXES[name][0]}

    @property
    def key(self) -> str:
        """What it does, in a line: only deviations are named."""
        return ", ".join(f"{axis}: {word}" for axis, word in self.deviations.items()) or "honest"

    @property
    def is_plain(self) -> bool:
        """Whether nothing about it is wrong or unusual: whoever asks must get the file."""
        return (
            set(self.deviations)
            <= {"length", "validator", "encoding", "type", "redirect", "timing"}
            and self.length in ("right", "chunked")
            and self.validator in ("strong", "weak", "none", "modified")
            and self.encoding in ("none", "identity")
            and self.redirect in ("none", "301", "302", "307", "308")
            and self.timing in ("prompt", "drip", "late")
        )

    @property
    def is_busy(self) -> bool:
        """Whether it asks to be left alone, which may be meant for all files of the server."""
        return self.status in BUSY

    @property
    def is_slow(self) -> bool:
        """Whether some answers of it take long, or never come."""
        return self.timing in ("late", "trickle", "silent", "stall", *HEADS_WITHOUT_END) or (
            self.length == "chunked without end"
        )

    @property
    def is_one_page(self) -> bool:
        """Whether it answers for many files with one document, such as a login page."""
        return self.redirect == "login" or self.body in ONE_FOR_ALL

    def _words(self) -> Iterator[tuple[str, str]]:
        for field in fields(self):
            yield field.name, getattr(self, field.name)

    @classmethod
    def from_key(cls, key: str) -> Behaviour:
        """Return the behaviour that has this key.

        >>> Behaviour.from_key("status: 416, turn: breaks 1").status
        '416'
        """
        if key == "honest":
            return cls()
        return cls(**dict(part.split(": ", 1) for part in key.split(", ")))


HONEST = Behaviour()


def makes_sense(behaviour: Behaviour) -> bool:
    """Whether each deviation can be seen: one that another hides is no behaviour of its own."""
    found = set(behaviour.deviations)
    status, redirect, body = behaviour.status, behaviour.redirect, behaviour.body
    if behaviour.timing in WITHOUT_HEAD:
        return found <= {"timing", "turn", "redirect"}
    if behaviour.names == "half" and not behaviour.is_one_page:
        return False
    if status in REFUSALS:
        return not found & {"content_range", "encoding", "body", "type", "names"}
    if redirect in ("loop", "nowhere", "elsewhere", "insecure", "another scheme"):
        return found <= {"redirect", "timing", "turn", "length"}
    if redirect == "login":
        mays = {"redirect", "status", "names", "turn", "timing"}
        return found <= mays and status in ("ranges", "whole")
    if "content_range" in found and status in ("whole", "200 for a part", "multipart"):
        return False
    if "type" in found and status in ("416", "multipart"):
        return False
    if status == "416" and found & {"encoding", "body"}:
        return False
    if body in ("endless", "long", "short") and "length" in found:
        return False
    if behaviour.encoding in ("gzip", "gzip of the part") and body in ("endless", "long", "short"):
        return False
    return not (behaviour.encoding == "gzip" and ("content_range" in found or status == "whole"))


@cache
def enumerate_behaviours() -> tuple[Behaviour, ...]:
    """Return all behaviours, each once: honest, one deviation, two, and drawn ones of three.

    >>> found = enumerate_behaviours()
    >>> len(found) >= 2000, len(found) == len(set(found)), found[0].key
    (True, True, 'honest')
    """
    found = {HONEST: None}
    for n in (1, 2):
        found |= dict.fromkeys(_deviating(n))
    n_all = len(found) + HOW_MANY_OF_THREE
    drawn = draw(random.Random(0), n_deviations=3)
    while len(found) < n_all:
        found[next(drawn)] = None
    return tuple(found)


def _deviating(n: int) -> Iterator[Behaviour]:
    for axes in combinations(AXES, n):
        for words in product(*(AXES[axis][1:] for axis in axes)):
            behaviour = replace(HONEST, **dict(zip(axes, words, strict=True)))
            # When it misbehaves is no misbehaviour.
            if makes_sense(behaviour) and set(behaviour.deviations) != {"turn"}:
                yield behaviour


def draw(rng: random.Random, n_deviations: int | None = None) -> Iterator[Behaviour]:
    """Yield behaviours at random, without end; of one to four deviations where it is not said."""
    while True:
        n = n_deviations or rng.choice((1, 2, 2, 3, 3, 4))
        axes = sorted(rng.sample(list(AXES), n))
        words = {axis: rng.choice(AXES[axis][1:]) for axis in axes}
        behaviour = replace(HONEST, **words)
        if makes_sense(behaviour) and set(words) != {"turn"}:
            yield behaviour
