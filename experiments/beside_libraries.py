"""Parts of this package beside libraries that do the same: time, and what becomes of odd input.

    pip install msgspec pathspec portion sortedcontainers urllib3 werkzeug
    python experiments/beside_libraries.py [PART…]

Parts are fields, tickets, patterns, intervals, ranges, page and headers; without one, all. Times
are the least of several, of the processor, ours and the library's by turns. `docs/developing.md`
says what was decided.
"""

from __future__ import annotations

import argparse
import math
import random
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import datacollect as dc

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
LONGEST_S = 5


def seconds(**calls: Callable[[], object]) -> None:
    """Print the least time of each, measured by turns; the first is ours."""
    least = dict.fromkeys(calls, math.inf)
    for _ in range(REPEATS):
        for name, call in calls.items():
            began = time.process_time()
            call()
            least[name] = min(least[name], time.process_time() - began)
    ours = next(iter(least.values()))
    for name, took_s in least.items():
        print(f"  {name:<28} {took_s * 1e3:10.3f} ms  {took_s / ours:6.2f} times ours")


def outcome(call: Callable[..., object], *arguments: Any) -> object:
    """Return what a call answers; "refused" for an error, "no end" where it takes too long."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST_S)
    try:
        return call(*arguments)
    except TimeoutError:
        return "no end"
    except Exception as error:  # noqa: BLE001 - whatever it is
        return f"refused ({type(error).__name__})"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def differences(cases: dict[str, tuple[object, ...]], *calls: Callable[..., object]) -> None:
    """Print what is answered to each case, where not all answer the same; ours first."""
    for name, arguments in cases.items():
        found = [outcome(call, *arguments) for call in calls]
        refused = [isinstance(each, str) and each.startswith("refused") for each in found]
        if not all(refused) and any(each != found[0] for each in found[1:]):
            print(f"  {name:<34}", *(str(each)[:34].ljust(34) for each in found))


# Fields of files --------------------------------------------------------------------------------

BYTES_STOP = 2**62
ODD_BYTES = (
    *(True, "5", "1 GB", "1 Gbit/s", "\uff15", "1_000", 1e9, 0.5, math.nan, math.inf),
    *(-1, BYTES_STOP, 10**400, None, [], np.int64(5)),
)


def fields() -> None:
    """19 900 links of 200 hosts, plain numbers; then one value of a host at a time."""
    import msgspec
    import pydantic

    from datacollect.problem.fields import PROBLEM

    names = [f"h{i}" for i in range(200)]
    tree: dict[str, Any] = {
        "destination": "h0",
        "hosts": {name: {"backlog_bytes": 10**9, "release_s": 0.5} for name in names},
        "links": [
            {"from": a, "to": b, "bandwidth_bytes_per_s": 1e6}
            for i, a in enumerate(names)
            for b in names[:i]
        ],
    }

    strict: Any = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)
    n_bytes, number, text = {"ge": 0, "lt": BYTES_STOP}, {"ge": 0}, {"min_length": 1}

    def of_msgspec(kind: Any, rules: dict[str, int]) -> Any:
        return Annotated[kind, msgspec.Meta(**rules)]

    def of_pydantic(kind: Any, rules: dict[str, int]) -> Any:
        return Annotated[kind, pydantic.Field(**rules)]

    def tables(of: Any, struct: Any, link_from: Any) -> Any:
        """Return the same tables in a library's words."""
        host = struct("Host", backlog_bytes=(of(int, n_bytes), 0), release_s=(of(float, number), 0))
        bandwidth = of(float, number) | list[float]
        rest = {"to": (of(str, text), ...), "bandwidth_bytes_per_s": (bandwidth, ...)}
        link = struct("Link", **link_from, **rest, price_per_gb=(of(float, number) | None, None))
        names = {"destination": (str, ...), "hosts": (dict[str, host], ...)}
        return struct("Problem", **names, links=(list[link], ...))

    def struct(name: str, **fields: Any) -> Any:
        return msgspec.defstruct(
            name,
            [
                (key, kind) if default is ... else (key, kind, default)
                for key, (kind, default) in fields.items()
            ],
            forbid_unknown_fields=True,
            rename={"tail": "from"},
        )

    def model(name: str, **fields: Any) -> Any:
        return pydantic.create_model(name, __config__=strict, **fields)

    tail = of_msgspec(str, text)
    by_msgspec = tables(of_msgspec, struct, {"tail": (tail, ...)})
    tail = Annotated[str, pydantic.Field(min_length=1, alias="from")]
    by_pydantic = tables(of_pydantic, model, {"tail": (tail, ...)})
    readers: dict[str, Callable[[Any], Any]] = {
        "ours": lambda tree: PROBLEM.read(tree, ""),
        "msgspec": lambda tree: msgspec.to_builtins(msgspec.convert(tree, by_msgspec)),
        "pydantic": lambda tree: by_pydantic.model_validate(tree).model_dump(),
    }
    reading = {name: partial(read, tree) for name, read in readers.items()}
    seconds(**reading, all_of_a_problem=lambda: dc.Problem.from_dict(tree))

    def bytes_by(read: Callable[[Any], Any], value: object) -> object:
        found = read({**tree, "links": [], "hosts": {"h0": {"backlog_bytes": value}}})
        return found["hosts"]["h0"]["backlog_bytes"]

    differences(
        {repr(value)[:34]: (value,) for value in ODD_BYTES},
        *(partial(bytes_by, read) for read in readers.values()),
    )
    wrong = {**tree, "links": [{"from": "a", "to": "b", "bandwith_bytes_per_s": 1}]}
    for name, read in readers.items():
        try:
            read(wrong)
        except Exception as error:  # noqa: BLE001 - each has its own
            print(f"  {name} says:", " / ".join(str(error).splitlines())[:200])


# Tickets ----------------------------------------------------------------------------------------


def tickets() -> None:
    """A relay's ticket signed and verified; then tokens in which one character was changed."""
    import pyseto
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from datacollect.net.keys import new_private_key, sign_token, verify_token

    key, payload, purpose = new_private_key(), b'{"v":1,"iss":"' + b"x" * 400 + b'"}', "example/1"
    private = Ed25519PrivateKey.from_private_bytes(key.seed)
    secret = pyseto.Key.from_asymmetric_key_params(4, d=key.seed)
    public = pyseto.Key.from_asymmetric_key_params(4, x=private.public_key().public_bytes_raw())
    token = sign_token(key, payload, purpose)

    def verified(text: str) -> bytes:
        return pyseto.decode(public, text, implicit_assertion=purpose.encode()).payload

    seconds(
        ours_sign=lambda: sign_token(key, payload, purpose),
        pyseto_sign=lambda: pyseto.encode(secret, payload, implicit_assertion=purpose.encode()),
    )
    seconds(
        ours_verify=lambda: verify_token(token, key.public, purpose),
        pyseto_verify=lambda: verified(token),
    )
    body = len("v4.public.")
    odd = {
        "as it is": token,
        "padded": token + "=",
        "an empty footer": token + ".",
        "a line's end": token + "\n",
        "another alphabet": token[:body] + token[body:].replace("-", "+").replace("_", "/"),
        "spare bits set": token[:-1] + chr(ord(token[-1]) + 1),
        "a space within": token[:40] + " " + token[40:],
        "an odd letter within": token[:40] + "!" + token[40:],
        "in no ASCII": token + "é",
        "cut short": token[:-9],
        "version 3": token.replace("v4", "v3"),
    }
    differences(
        {name: (text,) for name, text in odd.items()},
        lambda text: verify_token(text, key.public, purpose),
        verified,
    )


# Patterns ---------------------------------------------------------------------------------------


def patterns() -> None:
    """A hundred thousand paths and four patterns; then what gitignore's rules understand else."""
    import pathspec

    from datacollect.transfer.protocol.patterns import matches

    draw = random.Random(1)
    words = ["run7", "x", "raw", "a.tar", "b.log", "index", "part-17.h5"]
    paths = ["/".join(draw.choices(words, k=draw.randint(1, 5))) for _ in range(100_000)]
    wanted = ["*.tar", "run7/**", "**/*.h5", "raw/?/[ab]*"]
    spec = pathspec.GitIgnoreSpec.from_lines(wanted)
    seconds(
        ours=lambda: sum(matches(path, wanted) for path in paths),
        pathspec=lambda: sum(spec.match_file(path) for path in paths),
    )

    def by_pathspec(path: str, pattern: str) -> bool:
        return pathspec.GitIgnoreSpec.from_lines([pattern]).match_file(path)

    odd = {
        "a name at any depth": ("run7/a.tar", "*.tar"),
        "a folder's own name": ("run7/x", "run7"),
        "a comment's sign": ("#1", "#1"),
        "a comment": ("#1", "#*"),
        "a negation's sign": ("!a", "!a"),
        "a space at the end": ("a ", "a "),
        "a backslash": ("a\\b", "a\\b"),
        "above": ("a", "../a"),
        "two dots within": ("a/../b", "a/**"),
        "a line's end": ("a\n", "a"),
        "many stars": ("a" * 4000, "a*" * 30 + "b"),
        "many folders": ("a/" * 300 + "a", "**/a/" * 30 + "b"),
        "an open bracket": ("[", "["),
        "a class turned round": ("a", "[z-a]"),
    }
    differences(odd, lambda path, pattern: matches(path, [pattern]), by_pathspec)


# Intervals --------------------------------------------------------------------------------------


def intervals() -> None:
    """Of 600 samples of eight skewed logarithms: how often the truth is held; time for each."""
    from scipy.stats import bootstrap

    from datacollect.numbers.intervals import RESAMPLES, ratio_interval

    def ours(logs: np.ndarray) -> tuple[float, float]:
        found = ratio_interval(np.exp(logs), np.ones(len(logs)))
        return math.log(found.low), math.log(found.high)

    def scipys(logs: np.ndarray, method: str) -> tuple[float, float]:
        interval = bootstrap(
            (logs,), np.mean, n_resamples=RESAMPLES, method=method, rng=1
        ).confidence_interval
        return float(interval.low), float(interval.high)

    ways: dict[str, Callable[[np.ndarray], tuple[float, float]]] = {"ours": ours}
    for method in ("percentile", "basic", "BCa"):
        ways[f"scipy, {method}"] = lambda logs, method=method: scipys(logs, method)
    one = np.random.default_rng(1).exponential(1, 8) - 1
    seconds(**{name: lambda way=way: way(one) for name, way in ways.items()})
    for name, way in ways.items():
        draw = np.random.default_rng(8)
        samples = [draw.exponential(1, 8) - 1 for _ in range(600)]
        held = sum(low <= 0 <= high for low, high in map(way, samples))
        print(f"  {name:<28} holds the truth {held / len(samples):.3f} of the time, asked 0.95")


# Ranges of bytes --------------------------------------------------------------------------------


def ranges() -> None:
    """Pieces of a file that arrive in any order, and what is missing asked for now and then."""
    import portion
    from sortedcontainers import SortedDict

    from datacollect.numbers.byte_ranges import ByteRanges

    def ours(order: list[int]) -> int:
        there = ByteRanges()
        for i, piece in enumerate(order):
            there.add(piece * 1000, 1000)
            if i % 100 == 0:
                there.missing(0, 1000 * len(order))
        return there.total_bytes

    def by_portion(order: list[int]) -> int:
        there, everything = portion.empty(), portion.closedopen(0, 1000 * len(order))
        for i, piece in enumerate(order):
            there |= portion.closedopen(piece * 1000, piece * 1000 + 1000)
            if i % 100 == 0:
                _ = everything - there
        return sum(each.upper - each.lower for each in there)

    def by_sorted(order: list[int]) -> int:
        ends: SortedDict[int, int] = SortedDict()
        for i, piece in enumerate(order):
            start, end = piece * 1000, piece * 1000 + 1000
            at = ends.bisect_right(start) - 1
            if at >= 0 and ends.peekitem(at)[1] >= start:
                start, last = ends.popitem(at)
                end = max(end, last)
            at = ends.bisect_left(start)
            while at < len(ends) and ends.peekitem(at)[0] <= end:
                end = max(end, ends.popitem(at)[1])
            ends[start] = end
            if i % 100 == 0:
                _ = list(zip(ends.values(), list(ends)[1:], strict=False))
        return sum(end - start for start, end in ends.items())

    for n_pieces in (2000, 20_000):
        order = random.Random(1).sample(range(n_pieces), n_pieces)
        assert ours(order) == by_sorted(order) == 1000 * n_pieces
        print(f"  {n_pieces} pieces")
        ways = {"ours": partial(ours, order), "sortedcontainers": partial(by_sorted, order)}
        if n_pieces < 10_000:  # else minutes
            ways["portion"] = partial(by_portion, order)
        seconds(**ways)


# The page of a plan -----------------------------------------------------------------------------


def page() -> None:
    """Forty hosts: how long a page takes to write, and how large it is."""
    import pandas as pd
    import plotly.express as px

    from datacollect.pictures.page import plot_page

    names = [f"h{i}" for i in range(40)]
    draw = np.random.default_rng(1)
    rates = draw.lognormal(0, 1, (40, 40)) * 1e6
    backlogs = np.where(np.arange(40) % 3 == 1, 10**9, 0)
    problem = dc.Problem.from_matrix(names, rates, backlogs, "h0")
    schedule = dc.coordinated(problem)

    def by_plotly() -> str:
        moved = schedule.transfers
        bars = {
            "host": [schedule.routes[i].hosts[0] for i in schedule.columns.route],
            "start": pd.to_datetime(moved["start_s"], unit="s"),
            "finish": pd.to_datetime(moved["finish_s"], unit="s"),
        }
        figure = px.timeline(pd.DataFrame(bars), x_start="start", x_end="finish", y="host")
        return figure.to_html(include_plotlyjs=True)

    print(f"  {len(schedule.transfers)} transfers")
    for name, write in (("ours", lambda: plot_page(problem, schedule)), ("plotly", by_plotly)):
        print(f"  {name:<28} {len(write()) / 1e6:10.3f} MB")
    seconds(ours=lambda: plot_page(problem, schedule), plotly=by_plotly)


# Headers of answers -----------------------------------------------------------------------------


def headers() -> None:
    """Content-Range and Retry-After, as they should be and as some servers write them."""
    from urllib3.util.retry import Retry
    from werkzeug.http import parse_content_range_header

    from datacollect.transfer.sources.web.core.evidence import content_range
    from datacollect.transfer.sources.web.core.heads import Head, wait_s

    def ours(text: str) -> tuple[int | None, ...] | None:
        found = content_range(Head(206, {"content-range": text}))
        return None if found is None else tuple(found)

    def werkzeugs(text: str) -> tuple[int | None, ...] | None:
        found = parse_content_range_header(text)
        if found is None or found.units != "bytes":
            return None
        last = None if found.stop is None else found.stop - 1
        return found.start, last, found.length

    many = [f"bytes {i}-{i + 9}/100000" for i in range(20_000)]
    seconds(
        ours=lambda: [ours(text) for text in many],
        werkzeug=lambda: [werkzeugs(text) for text in many],
    )
    odd = [
        *(
            "bytes 0-9/10",
            "bytes 0-9/*",
            "bytes */10",
            "bytes 0-9/10, bytes 0-9/11",
            "bytes 9-0/10",
        ),
        *(
            "bytes 9-0/10",
            "bytes 0-10/10",
            "bytes -1-9/10",
            "bytes +0-+9/+10",
            "bytes 0_0-9/1_0",
            "bytes \u0660-9/10",
        ),
        *(
            "bytes 0 - 9 / 10",
            "bytes=0-9/10",
            "BYTES 0-9/10",
            "bytes 0-9/" + "9" * 25,
            "items 0-9/9",
        ),
    ]
    differences({text[:34]: (text,) for text in odd}, ours, werkzeugs)
    waits = Retry(respect_retry_after_header=True)
    after = [
        *("30", " 30 ", "-1", "+5", "0.5", "1e3", "\uff130", "9" * 12, "soon", "", "30, 60"),
        *("Wed, 21 Oct 2015 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "31 Dec 99999 00:00"),
    ]
    print("  Retry-After")
    differences(
        {text[:34] or "(nothing)": (text,) for text in after},
        lambda text: wait_s(Head(503, {"retry-after": text}), time.time()),
        waits.parse_retry_after,
    )


PARTS = {
    each.__name__: each for each in (fields, tickets, patterns, intervals, ranges, page, headers)
}


def main() -> None:
    """Measure the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", metavar="PART", nargs="*", choices=[*PARTS, []])
    for name in parser.parse_args().parts or PARTS:
        print(f"{name}: {PARTS[name].__doc__}")
        PARTS[name]()


if __name__ == "__main__":
    main()
