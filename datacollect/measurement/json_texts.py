"""JSON documents within a text: one after the other, in a list, between lines of other text.

Logs hold what several tests printed, beside warnings of the tool and of the shell; a test that
was killed leaves half a document.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

# An object, also behind a time and a host, as logs have it. A field of a CSV that holds JSON has
# its quotes doubled.
_OBJECT = re.compile(r"\{\s*\"[^\"\n]+\"\s*:")
_BEGINS = re.compile(rf"^[ \t]*(\{{|\[\s*[{{\]])|{_OBJECT.pattern}", re.MULTILINE)
# In brackets a list of documents; logs have the time, or how grave a line is, in them.
_DOCUMENT = re.compile(r"\{|\[\s*[\[{\]]")
_NEXT_DOCUMENT = re.compile(r"^\{", re.MULTILINE)


@dataclass(frozen=True)
class JsonDocument:
    """One document of a text.

    Attributes
    ----------
    number : int
        From 1.
    line : int
        Where it begins.
    tree : object
        What it says; None where it breaks off.
    problem : str
        Why it cannot be read: ``""`` where it can.
    """

    number: int
    line: int
    tree: Any
    problem: str = ""


def holds_documents(text: str) -> bool:
    r"""Return whether a text is JSON, or some of its lines begin a document of it.

    >>> holds_documents('warning: overflow\n{"start": {}}'), holds_documents("from,to\nS,D\n")
    (True, False)
    """
    return bool(_BEGINS.search(text)) or text.lstrip().startswith("[[")


def documents_of(text: str, other_lines: list[str]) -> Iterator[JsonDocument]:
    r"""Yield the documents of a text, those of a list one by one.

    Parameters
    ----------
    text : str
    other_lines : list of str
        Gets the lines that belong to no document.

    Examples
    --------
    >>> other_lines = []
    >>> found = documents_of('{"a": 1}\nwarning\n[{"a": 2}, {"a": 3}] {"a": ', other_lines)
    >>> [(d.number, d.line, d.tree, d.problem) for d in found]  # doctest: +NORMALIZE_WHITESPACE
    [(1, 1, {'a': 1}, ''), (2, 3, {'a': 2}, ''), (3, 3, {'a': 3}, ''),
     (4, 3, None, 'line 3: not complete JSON (Expecting value)')]
    >>> other_lines
    ['warning']
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object_without_duplicates)
    position, number, line, counted = 0, 0, 1, 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        line, counted = line + text.count("\n", counted, position), position
        if not _DOCUMENT.match(text, position):
            end = _end_of_other_text(text, position)
            other_lines.append(text[position:end].strip())
            position = end
            continue
        number += 1
        try:
            tree, position = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, DuplicateKeyError, RecursionError) as error:
            yield JsonDocument(number, line, None, _why(error))
            following = _NEXT_DOCUMENT.search(text, position + 1)
            position = following.start() if following else len(text)
            continue
        trees = tree if isinstance(tree, list) and tree else [tree]
        for i, one in enumerate(trees):
            yield JsonDocument(number + i, line, one)
        number += len(trees) - 1


def unwrapped(tree: Any) -> Iterator[Any]:
    """Yield the documents that a search in an archive (OpenSearch) has found; others as they are.

    >>> list(unwrapped({"hits": {"hits": [{"_source": {"a": 1}}, {"_source": {"a": 2}}]}}))
    [{'a': 1}, {'a': 2}]
    """
    if isinstance(tree, dict) and isinstance(tree.get("_source"), dict):
        yield tree["_source"]
        return
    hits = tree.get("hits") if isinstance(tree, dict) else None
    if isinstance(hits, dict) and isinstance(hits.get("hits"), list):
        for hit in hits["hits"]:
            yield from unwrapped(hit)
        return
    yield tree


def how_cut(tree: Any) -> str:
    """Return how an archive's answer says that it is not all of what was asked for; ``""``: it is.

    OpenSearch says so by itself, wherever a shard failed, time ran out, or more was found than is
    in the answer (10 documents where nobody asks for another ``size``).

    >>> how_cut({"hits": {"total": {"value": 12, "relation": "eq"}, "hits": [{}]}})
    'it holds 1 of 12 documents'
    """
    hits = tree.get("hits") if isinstance(tree, dict) else None
    if not isinstance(hits, dict):
        return ""
    found = hits.get("hits")
    if not isinstance(found, list):
        return ""
    said = hits.get("total")
    of_value = said if isinstance(said, dict) else {"value": said}
    total, relation = of_value.get("value"), of_value.get("relation", "eq")
    shards = tree.get("_shards")
    failed = shards.get("failed") if isinstance(shards, dict) else 0
    more = " or more" if relation == "gte" else ""
    ways = [
        "its time ran out" if tree.get("timed_out") is True else "",
        "it ended early" if tree.get("terminated_early") is True else "",
        f"{failed} of its shards failed" if type(failed) is int and failed > 0 else "",
        f"it holds {len(found)} of {total}{more} documents"
        if type(total) is int and (total > len(found) or more)
        else "",
    ]
    return ", ".join(text for text in ways if text)


def _end_of_other_text(text: str, position: int) -> int:
    """Return where a line of other text ends: at its end, or where an object begins in it."""
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    found = _OBJECT.search(text, position, end)
    return found.start() if found else end


class DuplicateKeyError(ValueError):
    """A key that says what was measured is given twice in one object."""


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: not complete JSON ({error.msg})"
    if isinstance(error, RecursionError):
        return "nested too deeply for the result of a test"
    return (
        f"{error} is given twice, so its direction is unknown; an old iperf3 writes this for "
        "--bidir: use 3.12 or newer, or one test per direction"
    )


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # iperf3 up to 3.10 wrote sum_sent and sum_received twice for --bidir (esnet/iperf#1196); a
    # dict would silently keep the reverse direction's. Other keys newer ones repeat too, such as
    # sock_bufsize with several streams.
    tree = dict(pairs)
    if len(tree) < len(pairs):
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1 and key.startswith("sum"):
                raise DuplicateKeyError(shown(key))
    return tree
