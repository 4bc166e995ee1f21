"""A grammar of misbehaviour: which message, which part of it, what is wrong with it, and when.

A seed makes a case of one or two misbehaviours; `Case.describe` says them in words.
"""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

from transfer.hostile.wrong_answers import (
    HEADERS,
    LENGTHS,
    SENDS,
    STATUS,
    STATUS_LINES,
    set_headers,
    set_length,
    set_more,
    set_send,
    set_status,
    unasked,
)
from transfer.hostile.wrong_bodies import BODIES, HASHES, READS
from transfer.hostile.wrong_greetings import GREETINGS
from transfer.hostile.wrong_pages import ENDLESS_PAGES, PAGES
from transfer.hostile.wrong_values import (
    CONFIRMATION,
    EXTENTS,
    FACT_ITEMS,
    FACTS,
    FILE,
    FOLDER,
    LEFT_OUT,
    MISSING,
    VALUES,
    change_field,
    change_item,
    change_last,
    change_line,
)


@dataclass(frozen=True)
class Misbehaviour:
    """One thing that an agent does wrong.

    Attributes
    ----------
    where : str
        In which message: greeting, facts, inventory, confirm, hash, read.
    words : str
    stage : str
        What `change` takes: ``"greeting"`` agent and socket, ``"tree"`` the values of a message and
        the request, ``"body"`` its bytes and the request, ``"reply"`` a `Reply` and the request.
    change : callable
    first, times : int
        From which question on, and how many times; 0: for ever.
    is_endless : bool
        It keeps a collector at work as long as it likes: it has to be stopped.
    """

    where: str
    words: str
    stage: str
    change: Callable
    first: int = 1
    times: int = 0
    is_endless: bool = False

    def is_due(self, count):
        return count >= self.first and (not self.times or count < self.first + self.times)

    def describe(self):
        when = f", from question {self.first} on" if self.first > 1 else ""
        when += f", {self.times} times" if self.times else ""
        return f"{self.where}: {self.words}{when}"


@dataclass(frozen=True)
class Case:
    """Misbehaviour of an agent, all in all."""

    seed: object
    misbehaviours: tuple

    @property
    def is_endless(self):
        return any(each.is_endless for each in self.misbehaviours)

    @property
    def wants_hashes(self):
        """Whether a file is to lie at the destination already, so that hashes are asked for."""
        return any(each.where == "hash" for each in self.misbehaviours)

    def describe(self):
        return f"seed {self.seed}: " + "; and ".join(m.describe() for m in self.misbehaviours)


MESSAGES = ("facts", "inventory", "confirm", "hash", "read")


def is_slow(where, words):
    """Whether sending so is right, only slow: it ends by itself, late."""
    return where == "read" and words in {"a byte every 0.05 s", "20 bytes every 0.1 s"}


def field_misbehaviours(where):
    """Yield what can be wrong with the fields of a message."""
    if where == "facts":
        for key, (words, value) in itertools.product(FACTS, VALUES.items()):
            yield Misbehaviour(
                where, f"{key} is {words}", "tree", partial(change_field, key=key, value=value)
            )
        for key, (words, value) in itertools.product(FACT_ITEMS, VALUES.items()):
            yield Misbehaviour(
                where, f"{key} holds {words}", "tree", partial(change_item, key=key, value=value)
            )
        many = [f"host{i}" for i in range(10_001)]
        for key, n in itertools.product(FACT_ITEMS, (10_000, 10_001)):
            yield Misbehaviour(
                where, f"{key} has {n}", "tree", partial(change_field, key=key, value=many[:n])
            )
    elif where == "inventory":
        kinds = (("path", FILE), ("folder", FOLDER), ("left_out", LEFT_OUT))
        for kind, keys in kinds:
            for key, (words, value), every in itertools.product(keys, VALUES.items(), (0, 1)):
                yield Misbehaviour(
                    where,
                    f"{key} of {'all lines' if every else 'a line'} with {kind} is {words}",
                    "tree",
                    partial(change_line, kind=kind, key=key, value=value, every=every),
                )
        for words, value in VALUES.items():
            yield Misbehaviour(where, f"next is {words}", "tree", partial(change_last, value=value))
        for words, value in EXTENTS.items():
            yield Misbehaviour(
                where,
                f"extents of all files are {words}",
                "tree",
                partial(change_line, kind="path", key="extents", value=value, every=True),
            )
    elif where == "confirm":
        for key, (words, value) in itertools.product(CONFIRMATION, VALUES.items()):
            yield Misbehaviour(
                where, f"{key} is {words}", "tree", partial(change_field, key=key, value=value)
            )
            yield Misbehaviour(
                where, f"{key} holds {words}", "tree", partial(change_item, key=key, value=value)
            )
            yield Misbehaviour(
                where,
                f"unreadable holds a file whose reason is {words}",
                "tree",
                partial(change_item, key="unreadable", value=["b", value_or(value, None)]),
            )
        for key, n in itertools.product(("changed", "gone"), (2**18, 2**18 + 1)):
            yield Misbehaviour(where, f"{key} has {n}", "tree", partial(tell_many, key=key, n=n))


def tell_many(tree, _, key, n):
    return tree | {key: [f"n{i}" for i in range(n)]}


def value_or(value, otherwise):
    return otherwise if value is MISSING else value


def body_misbehaviours(where):
    """Yield what can be wrong with the body of a message as a whole."""
    for words, change in BODIES.items():
        yield Misbehaviour(where, f"its body is {words}", "body", ignoring_request(change))
    if where == "inventory":
        for words, change in PAGES.items():
            yield Misbehaviour(where, words, "tree", change)
        for words, change in ENDLESS_PAGES.items():
            yield Misbehaviour(where, words, "tree", change, is_endless=True)
    more = {"read": READS, "hash": HASHES}.get(where, {})
    for words, change in more.items():
        yield Misbehaviour(where, f"its bytes: {words}", "body", ignoring_request(change))


def ignoring_request(change):
    return lambda body, _: change(body)


def http_misbehaviours(where):
    """Yield what can be wrong with the head of an answer."""
    for words, line in (STATUS | STATUS_LINES).items():
        yield Misbehaviour(where, f"the status is {words}", "reply", partial(set_status, line=line))
    for words, value in LENGTHS.items():
        yield Misbehaviour(
            where, f"its length is {words}", "reply", partial(set_length, value=value)
        )
    for words, value in HEADERS.items():
        yield Misbehaviour(where, f"headers: {words}", "reply", partial(set_headers, headers=value))


def sending_misbehaviours(where):
    """Yield the ways in which an answer comes, or does not."""
    for words, send in SENDS.items():
        yield Misbehaviour(
            where,
            f"it sends {words}",
            "reply",
            partial(set_send, send=send),
            is_endless=is_slow(where, words),
        )
    yield Misbehaviour(
        where, "it sends answers nobody asked for", "reply", partial(set_more, more=unasked)
    )


def greeting_misbehaviours():
    """Yield what can be wrong before there is a session."""
    for words, greet in GREETINGS.items():
        yield Misbehaviour("greeting", words, "greeting", greet)


# So that confirmations are asked for: bytes that do not count.
CHANGED_ALWAYS = Misbehaviour(
    "read", "its bytes: status 1", "body", lambda body, _: READS["status 1"](body)
)

KINDS = {
    "fields": (4, ("facts", "inventory", "inventory", "confirm"), field_misbehaviours),
    "body": (3, MESSAGES, body_misbehaviours),
    "http": (3, MESSAGES, http_misbehaviours),
    "sending": (3, MESSAGES, sending_misbehaviours),
    "greeting": (1, ("greeting",), lambda _: greeting_misbehaviours()),
}


@cache
def all_misbehaviours():
    """Return everything that the grammar knows."""
    return tuple(
        each
        for _, places, of in KINDS.values()
        for where in dict.fromkeys(places)
        for each in of(where)
    )


def one_of(rng):
    """Return a misbehaviour by chance."""
    kinds = list(KINDS.values())
    _, places, of = rng.choices(kinds, [weight for weight, _, _ in kinds])[0]
    return rng.choice(all_of(of, rng.choice(places)))


@cache
def all_of(of, where):
    return tuple(of(where))


def case_of(seed):
    """Return what an agent of this seed does wrong."""
    rng = random.Random(f"hostile {seed}")
    chosen = []
    for _ in range(rng.choice((1, 1, 2))):
        each = one_of(rng)
        when = rng.random()
        if when < 0.1:
            each = replace(each, times=1)
        elif when < 0.2:
            each = replace(each, first=2)
        chosen.append(each)
    return with_cause(Case(seed, tuple(chosen)))


def with_cause(case):
    """Return a case in which what it wants to misbehave in is asked for."""
    if any(each.where == "confirm" for each in case.misbehaviours):
        return replace(case, misbehaviours=(*case.misbehaviours, CHANGED_ALWAYS))
    return case


def case_by_words(where, words, **more):
    """Return the case of one misbehaviour, named as it describes itself."""
    found = [m for m in all_misbehaviours() if m.where == where and m.words == words]
    if not found:
        raise KeyError(f"{where}: {words}")
    return with_cause(Case(f"{where}: {words}", (replace(found[0], **more),)))
