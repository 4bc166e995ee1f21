"""Routes in what programs that trace them have written, and when two of them are equal.

A hop is an address; None where nothing answered; or, where a program cannot keep its packets on one
path, the list of all that answered there, of whatever path. The other end is no hop. A route whose
end was not seen ends with None.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.documents import peer_json
from datacollect.installation import is_absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Hop: TypeAlias = "str | list[str] | None"

MOST_HOPS = 64
# Longer lines are none of such a program's.
MOST_LINE = 500


def require_jc() -> None:
    """Raise `ProblemError` with the remedy where jc is not installed, which reads traceroute."""
    try:
        import jc.parsers.traceroute  # noqa: F401
    except ImportError as error:
        from datacollect.installation import command_for_extra

        if not is_absent(error, "jc"):
            raise
        raise ProblemError(
            "jc, which reads what traceroute says, is not installed: "
            f"{command_for_extra('measure')}"
        ) from None


def route_of_traceroute(text: str, address: str, *, one_flow: bool) -> list[Hop]:
    r"""Return the route in the text of a traceroute.

    Parameters
    ----------
    text : str
        As by ``traceroute -n``; it may be cut anywhere.
    address : str
        Of the other end.
    one_flow : bool
        Whether all its packets had the same addresses and ports.

    Raises
    ------
    ProblemError
        The text is none of a traceroute.

    Examples
    --------
    >>> text = "traceroute to 9.9.9.9 (9.9.9.9), 30 hops max, 60 byte packets\n"
    >>> text += " 1  8.8.8.8  1.5 ms  1.4 ms\n 2  * *\n 3  9.9.9.9  2.5 ms  2.4 ms\n"
    >>> route_of_traceroute(text, "9.9.9.9", one_flow=True)
    ['8.8.8.8', None]
    """
    from jc.exceptions import ParseError
    from jc.parsers import traceroute

    # Without types where it is installed, unknown where it is not.
    parse: Callable[..., Any] = traceroute.parse
    if any(len(line) > MOST_LINE for line in text.splitlines()):
        raise ProblemError("a line of the text is too long to be traceroute's")
    try:
        parsed: dict[str, Any] = parse(text, quiet=True)
    except (ParseError, ValueError, ArithmeticError):
        parsed = {}
    answers: dict[int, list[str]] = {}
    for hop in parsed.get("hops", ()):
        found = [probe["ip"] for probe in hop["probes"] if probe["ip"] and probe["rtt"] is not None]
        answers[hop["hop"]] = list(dict.fromkeys(found))
    return _route(answers, address, one_flow=one_flow)


def route_of_scamper(text: str, address: str) -> list[Hop]:
    """Return the route in a line that scamper writes, which keeps its packets on one path.

    >>> import json
    >>> hops = [{"addr": "8.8.8.8", "probe_ttl": 1}, {"addr": "9.9.9.9", "probe_ttl": 3}]
    >>> text = json.dumps({"type": "trace", "hop_count": 3, "hops": hops})
    >>> route_of_scamper(text, "9.9.9.9")
    ['8.8.8.8', None]
    """
    try:
        tree = peer_json(text)
        hops = tree.get("hops", [])
        answers: dict[int, list[str]] = {int(tree["hop_count"]): []}
        for hop in hops:
            answers.setdefault(int(hop["probe_ttl"]), []).append(str(hop["addr"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ProblemError("the text is not a line of scamper's") from None
    return _route(answers, address, one_flow=True)


def _route(answers: dict[int, list[str]], address: str, *, one_flow: bool) -> list[Hop]:
    """Return the hops up to the other end, or to the last that answered and then None."""
    if not answers or not 1 <= min(answers) <= max(answers) <= MOST_HOPS:
        raise ProblemError(f"the route must have hops from 1 to {MOST_HOPS} at most")
    route: list[Hop] = []
    for number in range(1, max(answers) + 1):
        found = [_address(text) for text in answers.get(number, ())]
        if _address(address) in found:
            return route
        if one_flow:
            # Where one path has changed meanwhile, the first answer counts.
            route.append(found[0] if found else None)
        else:
            route.append(found or None)
    while route and route[-1] is None:
        route.pop()
    return [*route, None]


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ProblemError("a hop of the route has no address") from None


def read_route(text: str) -> list[Hop]:
    """Return the route that a sample holds as JSON.

    Raises
    ------
    ProblemError
        It holds none.

    Examples
    --------
    >>> read_route('["8.8.8.8", null, ["8.8.4.4", "8.8.4.5"]]')
    ['8.8.8.8', None, ['8.8.4.4', '8.8.4.5']]
    """
    route = peer_json(text)
    if not isinstance(route, list) or not all(map(_is_hop, route)):
        raise ProblemError("routers must be a list of addresses, of lists of such, and of null")
    return route


def _is_hop(hop: object) -> bool:
    if isinstance(hop, list):
        return bool(hop) and all(map(_is_address, hop))
    return hop is None or _is_address(hop)


def _is_address(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def answering(hop: Hop) -> Sequence[str]:
    """Return all routers that have answered at a hop.

    >>> [*answering("8.8.8.8"), *answering(None), *answering(["8.8.4.4"])]
    ['8.8.8.8', '8.8.4.4']
    """
    if hop is None:
        return ()
    return (hop,) if isinstance(hop, str) else hop


def is_of_one_path(route: Iterable[Hop]) -> bool:
    """Return whether no hop of it may be another path's."""
    return not any(isinstance(hop, list) for hop in route)


def agree(one: Sequence[Hop], other: Sequence[Hop]) -> bool:
    """Say whether two routes of one path each may be the same: where both know a hop, it is equal.

    >>> agree(["a", None, "c"], ["a", "b", None]), agree(["a", "b"], ["a"])
    (True, False)
    """
    short, long = sorted((one, other), key=len)
    if any(a is not None and b is not None and a != b for a, b in zip(short, long, strict=False)):
        return False
    return len(short) == len(long) or (bool(short) and short[-1] is None)


def merged(one: Sequence[Hop], other: Sequence[Hop]) -> list[Hop]:
    """Return what two routes that agree know together.

    >>> merged(["a", None], ["a", "b", "c"])
    ['a', 'b', 'c']
    """
    short, long = sorted((one, other), key=len)
    return [
        *(b if a is None else a for a, b in zip(short, long, strict=False)),
        *long[len(short) :],
    ]
