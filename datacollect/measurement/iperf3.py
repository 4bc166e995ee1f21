"""Samples of bandwidth from iperf3's JSON output.

What a planner needs is what arrived, so the receiver's figure counts. The format is that of
``iperf3 -J`` (iperf3 3.1 to 3.19); it has no written specification, see ``iperf_api.c`` in
https://github.com/esnet/iperf.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.units import bytes_per_s_from_bit_per_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    import pandas as pd

Tree: TypeAlias = "dict[str, Any]"


def samples_from_iperf3(
    path: str | PathLike[str], names: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Read samples of bandwidth from what ``iperf3 -J`` printed.

    The receiver's figure counts. A reverse test (``-R``) is a sample of the other direction, a
    bidirectional one (``--bidir``) gives two samples. An old iperf3 states of a UDP test the
    sender's figure and the losses; the losses are subtracted.

    Parameters
    ----------
    path : path-like
        A file with the output of one test or, appended, of several; or a folder, of which all
        files ``*.json`` are read, in order of their names.
    names : mapping from str to str, optional
        Host's name by address. Without it a host's name is its address. A host whose name in
        the problem stands in ``iperf3 -c NAME`` needs no entry.

    Returns
    -------
    DataFrame
        A row per sample: from, to, time_s (start of the test, seconds since 1970),
        bandwidth_bytes_per_s, bytes, duration_s, streams.

    Raises
    ------
    ProblemError
        A file holds no complete iperf3 result, or one of a test that failed.

    Examples
    --------
    >>> import json, tempfile
    >>> test = {
    ...     "start": {
    ...         "connected": [{"local_host": "10.0.0.1", "remote_host": "10.0.0.2"}],
    ...         "timestamp": {"timesecs": 1_700_000_000},
    ...         "test_start": {"num_streams": 4, "reverse": 0},
    ...     },
    ...     "end": {"sum_received": {"seconds": 8.0, "bytes": 5_000_000, "bits_per_second": 5e6}},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "lyon.json").write_text(json.dumps(test))
    ...     samples = samples_from_iperf3(folder, {"10.0.0.1": "lyon", "10.0.0.2": "geneva"})
    >>> samples[["from", "to", "bandwidth_bytes_per_s", "streams"]].values.tolist()
    [['lyon', 'geneva', 625000.0, 4]]
    """
    import pandas as pd

    rows = [
        row
        for file in _files(Path(path))
        for where, result in _results(file)
        for row in _samples(result, names, where)
    ]
    return pd.DataFrame(rows)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise ProblemError(f"{path}: the folder holds no file *.json; name iperf3's outputs so")
    return files


def _results(file: Path) -> Iterator[tuple[str, Tree]]:
    """Yield each test's place and JSON tree: ``--logfile`` appends one result to another."""
    try:
        text = file.read_text(encoding="utf-8-sig").strip()
    except OSError as error:
        raise ProblemError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ProblemError(f"{file}: must be UTF-8 text; give the output of iperf3 -J") from None
    if not text:
        raise ProblemError(f"{file}: the file is empty; give the output of iperf3 -J")
    decoder = json.JSONDecoder(object_pairs_hook=_object_without_duplicates)
    position, number = 0, 1
    while position < len(text):
        where = str(file) if number == 1 else f"{file}, test {number}"
        try:
            tree, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise ProblemError(
                f"{file}, line {error.lineno}: not complete JSON ({error.msg}); repeat the test "
                "with iperf3 -J and let it end"
            ) from None
        except _DuplicateKeyError as error:
            raise ProblemError(
                f"{where}: {error} is given twice, so its direction is unknown; an old iperf3 "
                "writes this for --bidir: use 3.12 or newer, or one test per direction"
            ) from None
        except RecursionError:
            raise ProblemError(f"{where}: nested too deeply for a result of iperf3 -J") from None
        yield where, tree
        position, number = end, number + 1
        while position < len(text) and text[position].isspace():
            position += 1


class _DuplicateKeyError(ValueError):
    pass


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> Tree:
    # iperf3 up to 3.10 wrote sum_sent and sum_received twice for --bidir (esnet/iperf#1196); a
    # dict would silently keep the reverse direction's. Other keys newer ones repeat too, such as
    # sock_bufsize with several streams.
    tree = dict(pairs)
    if len(tree) < len(pairs):
        sums = [key for key, _ in pairs if key.startswith("sum")]
        for key in sums:
            if sums.count(key) > 1:
                raise _DuplicateKeyError(repr(key))
    return tree


def _samples(result: Any, names: Mapping[str, str] | None, where: str) -> Iterator[Tree]:
    if isinstance(result, dict) and result.get("error"):
        raise ProblemError(
            f"{where}: the test failed, iperf3 says {result['error']!r}; repeat the test or "
            "remove the file"
        )
    if isinstance(result, dict) and "event" in result:
        raise ProblemError(f"{where}: written with --json-stream; use iperf3 -J without it")
    if not isinstance(result, dict) or not {"start", "end"} <= result.keys():
        raise ProblemError(f"{where}: must be the output of iperf3 -J, with keys start and end")
    start, end = _tree(result, "start", where), _tree(result, "end", where)
    local, remote = _ends(start, names, where)
    test = _tree(start, "test_start", f"{where}: start")
    at_server = "accepted_connection" in start
    ends = (remote, local) if at_server else (local, remote)
    for suffix in ("", "_bidir_reverse"):
        reverse = bool(test.get("reverse")) or bool(suffix)
        if suffix and not any(key.endswith(suffix) for key in end):
            continue
        received = _received(end, suffix, where)
        # What the client received the server's output gives as 0, and up to 3.10 UDP altogether
        # (esnet/iperf#754).
        if at_server and (reverse or not received["bytes"]):
            raise ProblemError(
                f"{where}: the server's output lacks the receiver's figure of this test; give the "
                "client's output"
            )
        sender, receiver = reversed(ends) if reverse else ends
        yield {
            "from": sender,
            "to": receiver,
            "time_s": _number(
                _tree(start, "timestamp", f"{where}: start"), "timesecs", f"{where}: timestamp"
            ),
            **received,
            "streams": int(_number(test, "num_streams", f"{where}: test_start")),
        }


def _ends(start: Tree, names: Mapping[str, str] | None, where: str) -> tuple[str, str]:
    """Return the names of the host that wrote the output and of its peer."""
    connected = start.get("connected")
    if not isinstance(connected, list) or not connected or not isinstance(connected[0], dict):
        raise ProblemError(f"{where}: start.connected is empty: no connection was made")
    peer = start.get("connecting_to")
    asked_for = peer.get("host") if isinstance(peer, dict) else None
    local = _name([connected[0].get("local_host")], names, where)
    remote = _name([connected[0].get("remote_host"), asked_for], names, where)
    if local == remote:
        raise ProblemError(f"{where}: a test from {local!r} to itself; it measures no link")
    return local, remote


def _name(addresses: list[Any], names: Mapping[str, str] | None, where: str) -> str:
    known = [address for address in addresses if isinstance(address, str) and address]
    if not known:
        raise ProblemError(f"{where}: start.connected must hold local_host and remote_host")
    if names is None:
        return known[0]
    for address in known:
        if address in names:
            return names[address]
    for address in known:
        if address in names.values():
            return address
    raise ProblemError(f"{where}: address {known[0]!r} is not in names; add it")


def _received(end: Tree, suffix: str, where: str) -> Tree:
    """Return what the receiver got: bandwidth, bytes and duration."""
    arrived = 1.0
    key = f"sum_received{suffix}"
    if key not in end and f"sum{suffix}" in end:
        # UDP up to 3.10 (esnet/iperf#584): `sum` is the sender's, its losses the receiver's.
        key = f"sum{suffix}"
        place = f"{where}: end.{key}"
        lost_packets = _number(_tree(end, key, where), "lost_packets", place)
        packets = _number(_tree(end, key, where), "packets", place)
        arrived = max(0.0, 1 - lost_packets / packets) if packets else 0.0
    total = _tree(end, key, f"{where}: end")
    place = f"{where}: end.{key}"
    rate_bit_per_s = _number(total, "bits_per_second", place)
    return {
        "bandwidth_bytes_per_s": bytes_per_s_from_bit_per_s(rate_bit_per_s) * arrived,
        "bytes": round(_number(total, "bytes", place) * arrived),
        "duration_s": _number(total, "seconds", place),
    }


def _tree(tree: Tree, key: str, where: str) -> Tree:
    value = tree.get(key)
    if not isinstance(value, dict):
        raise ProblemError(
            f"{where}: {key} is missing; give the complete output of iperf3 -J (3.1 or newer)"
        )
    return value


def _number(tree: Tree, key: str, where: str) -> float:
    value = tree.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProblemError(f"{where}: {key} must be a number, got {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise ProblemError(f"{where}: {key} must be >= 0 and finite, got {value:g}")
    return value
