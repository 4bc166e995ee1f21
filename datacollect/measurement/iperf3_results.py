"""Results of a test in iperf3's JSON output.

What a planner needs is what arrived, so the receiver's figure counts. The format is that of
``iperf3 -J`` (iperf3 3.1 to 3.19); it has no written specification, see ``iperf_api.c`` in
https://github.com/esnet/iperf.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.addresses import host_of
from datacollect.files.kinds import shown_text
from datacollect.files.units import bytes_per_s_from_bit_per_s
from datacollect.measurement.outcomes import (
    PACE_OPTION,
    RATE_OPTION,
    STREAMS,
    WINDOW_OPTION,
    FailedTestError,
    Outcome,
    Sample,
    narrowest,
    rate_of_window,
    require_arrived,
    require_losses,
)
from datacollect.measurement.readers import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

Tree: TypeAlias = "dict[str, Any]"

# What tests in both directions at once add to their protocol: each direction slows the other.
_BOTH_DIRECTIONS = "both ways at once"
# What follows the names of sums of the second direction of a test in both.
_OTHER_WAY = "_bidir_reverse"


# What it prints where it has nothing else to say; and its output for people, without -J:
# "[ ID] Interval", "[  5] local 10.0.0.1 ...".
_COMPLAINT = "iperf3: "
_FOR_PEOPLE = re.compile(r"^\[ *(ID|SUM|\d+)\](\[[RT]X-[SC]\])? ", re.MULTILINE)


class _Iperf3(Reader):
    def reads_document(self, tree: Any) -> bool:
        if not isinstance(tree, dict) or "test" in tree:
            return False
        return {"start", "end"} <= tree.keys() or "error" in tree or "event" in tree

    def outcome(self, tree: Any, place: str, names: Mapping[str, str] | None) -> Outcome:
        return outcome_of_iperf3(tree, place, names)

    def reads_text(self, text: str) -> bool:
        return text.lstrip().startswith(_COMPLAINT) or bool(_FOR_PEOPLE.search(text))

    def outcomes(
        self,
        text: str,
        place: str,
        names: Mapping[str, str] | None,
    ) -> tuple[Outcome, ...]:
        failure = f"{place}: is iperf3's output for people; repeat the test with iperf3 -J"
        if not _FOR_PEOPLE.search(text):
            first = shown_text(text.strip().splitlines()[0])
            failure = f"{place}: the test failed, iperf3 says {first!r}"
        return (Outcome(place, failures=(failure,)),)


IPERF3 = _Iperf3(
    name="iperf3",
    text="what iperf3 -J printed",
    document="the output of iperf3 -J, with keys start and end",
)


def outcome_of_iperf3(tree: Tree, place: str, names: Mapping[str, str] | None = None) -> Outcome:
    """Return what a result of ``iperf3 -J`` says: a sample for each direction, or why it has none.

    The receiver's figure counts. A reverse test (``-R``) is a sample of the other direction, a
    bidirectional one (``--bidir``) gives two samples. An old iperf3 states of a UDP test the
    sender's figure and the losses; the losses are subtracted.

    Parameters
    ----------
    tree : dict
    place : str
        File, and which test in it, for messages.
    names : mapping from str to str, optional
        Host's name by address, as of `datacollect.measurement.iperf3.samples_from_iperf3`.

    Raises
    ------
    ProblemError
        It is no complete result.
    """
    if "event" in tree and not {"start", "end"} <= tree.keys():
        raise ProblemError(f"{place}: written with --json-stream; use iperf3 -J without it")
    content = json.dumps(tree, sort_keys=True)
    if tree.get("error"):
        failure = f"{place}: the test failed, iperf3 says {tree['error']!r}"
        return Outcome(place, failures=(failure,), content=content)
    start, end = _tree(tree, "start", place), _tree(tree, "end", place)
    connected = start.get("connected")
    if not isinstance(connected, list) or not connected or not isinstance(connected[0], dict):
        failure = f"{place}: start.connected is empty: no connection was made"
        return Outcome(place, failures=(failure,), content=content)
    local, remote = _ends(start, connected[0], names, place)
    test = _tree(start, "test_start", f"{place}: start")
    at_server = "accepted_connection" in start
    ends = (remote, local) if at_server else (local, remote)
    time_s = _number(
        _tree(start, "timestamp", f"{place}: start"), "timesecs", f"{place}: timestamp"
    )
    kind, suffixes = str(test.get("protocol", "TCP")), [""]
    if any(key.endswith(_OTHER_WAY) for key in end):
        kind, suffixes = f"{kind} {_BOTH_DIRECTIONS}", ["", _OTHER_WAY]
    samples, failures = [], []
    for suffix in suffixes:
        reverse = bool(test.get("reverse")) or bool(suffix)
        try:
            received = _received(end, suffix, place, at_server=at_server, reverse=reverse)
        except FailedTestError as error:
            failures.append(str(error))
            continue
        sender, receiver = reversed(ends) if reverse else ends
        streams = STREAMS.read(test.get("num_streams"), f"{place}: test_start.num_streams")
        rate_bytes_per_s, n_bytes, duration_s = received
        sample = Sample(
            sender,
            receiver,
            time_s,
            rate_bytes_per_s,
            n_bytes,
            duration_s,
            streams,
            kind,
            narrowest(_limits(test, start, end, streams)),
        )
        samples.append(sample)
    return Outcome(
        place, tuple(samples), tuple(failures), _identity(start, test), content, at_server
    )


def _identity(start: Tree, test: Tree) -> str:
    """Return what both ends' outputs of a test have in common, and other tests do not."""
    cookie = start.get("cookie")
    if not isinstance(cookie, str) or not cookie:
        return ""
    kind = [str(test.get(key)) for key in ("protocol", "num_streams", "reverse")]
    return " ".join([cookie, *kind])


def _limits(test: Tree, start: Tree, end: Tree, streams: int) -> list[tuple[str, float]]:
    """Return what the tester set for the test, each stream alike; 0: nothing."""
    paced = _known(test.get("fqrate", start.get("fq_rate")))
    window_bytes, round_trip_s = _known(start.get("sock_bufsize")), _round_trip_s(end)
    return [
        (RATE_OPTION, _rate_set(test, start, end, streams)),
        (PACE_OPTION, bytes_per_s_from_bit_per_s(paced) * streams),
        (WINDOW_OPTION, rate_of_window(window_bytes, round_trip_s, streams)),
    ]


def _round_trip_s(end: Tree) -> float:
    """Return the mean round trip of the streams' senders; 0: nobody says it."""
    streams = end.get("streams")
    found = [
        _known(stream["sender"].get("mean_rtt"))
        for stream in (streams if isinstance(streams, list) else [])
        if isinstance(stream, dict) and isinstance(stream.get("sender"), dict)
    ]
    known = [rtt for rtt in found if rtt > 0]
    return sum(known) / len(known) / 1e6 if known else 0.0


def _known(value: Any) -> float:
    """Return a number that may be missing; 0 where it is, or says nothing."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < math.inf else 0.0


def _rate_set(test: Tree, start: Tree, end: Tree, streams: int) -> float:
    """Return the rate set for the test (-b, for each stream); 0: none."""
    said = test.get("target_bitrate", start.get("target_bitrate"))
    if said is None and test.get("protocol") == "UDP":
        # Versions that do not say it sent UDP at the rate of -b, 1 Mbit/s by default.
        sent = end.get("sum")
        said, streams = (sent.get("bits_per_second") if isinstance(sent, dict) else None), 1
    return bytes_per_s_from_bit_per_s(_known(said)) * streams


def _ends(
    start: Tree, connected: Tree, names: Mapping[str, str] | None, where: str
) -> tuple[str, str]:
    """Return the names of the host that wrote the output and of its peer."""
    peer = start.get("connecting_to")
    asked_for = peer.get("host") if isinstance(peer, dict) else None
    local = _name([connected.get("local_host")], names, where)
    remote = _name([connected.get("remote_host"), asked_for], names, where)
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
        if host := host_of(address, names):
            return host
    for address in known:
        if address in names.values():
            return address
    raise ProblemError(
        f"{where}: address {known[0]!r} is not in names; add it, with "
        f"--name {known[0]}=HOST, or to names.csv"
    )


def _received(
    end: Tree, suffix: str, where: str, *, at_server: bool, reverse: bool
) -> tuple[float, int, float]:
    """Return what the receiver got: bytes per second, bytes, and seconds.

    Raises
    ------
    FailedTestError
        Nothing arrived, or this end does not know what did.
    """
    arrived = 1.0
    key = f"sum_received{suffix}"
    if key not in end and f"sum{suffix}" in end:
        # UDP up to 3.10 (esnet/iperf#584): `sum` is the sender's, its losses the receiver's.
        key = f"sum{suffix}"
        place = f"{where}: end.{key}"
        said = _tree(end, key, where)
        require_losses(place, said.get("packets"), said.get("lost_packets"))
        lost_packets = _number(said, "lost_packets", place)
        packets = _number(said, "packets", place)
        if not packets:
            raise FailedTestError(f"{place}: no packet was sent, so nothing was measured")
        arrived = max(0.0, 1 - lost_packets / packets)
    if key not in end:
        raise FailedTestError(
            f"{where}: end: {key} is missing; give the complete output of iperf3 -J (3.1 or newer)"
        )
    total = _tree(end, key, f"{where}: end")
    place = f"{where}: end.{key}"
    rate_bytes_per_s = bytes_per_s_from_bit_per_s(_number(total, "bits_per_second", place))
    rate_bytes_per_s *= arrived
    n_bytes = round(_number(total, "bytes", place) * arrived)
    duration_s = _number(total, "seconds", place)
    # What the client received the server's output gives as 0, and up to 3.10 UDP altogether
    # (esnet/iperf#754).
    if at_server and (reverse or not n_bytes):
        raise FailedTestError(
            f"{where}: the server's output lacks the receiver's figure of this test; give the "
            "client's output"
        )
    if "packets" in total:
        packets = _number(total, "packets", place)
        if not packets:
            raise FailedTestError(f"{place}: no packet was sent, so nothing was measured")
        if "lost_packets" in total and _number(total, "lost_packets", place) >= packets:
            raise FailedTestError(f"{place}: nothing arrived: all {packets:g} packets were lost")
    require_arrived(place, rate_bytes_per_s, n_bytes, duration_s)
    return rate_bytes_per_s, n_bytes, duration_s


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
    if not 0 <= value <= sys.float_info.max:
        raise ProblemError(f"{where}: {key} must be >= 0 and finite, got {value!s:.40}")
    return value
