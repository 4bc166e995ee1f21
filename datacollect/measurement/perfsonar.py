"""Throughput tests in perfSONAR's archives: JSON, a document for each run.

- pScheduler's HTTP archiver sends ``test`` (type and specification), ``run``, ``participants`` and
  ``result``, whose ``summary.summary`` has the rates of the whole test.
- perfSONAR's archive (Logstash and OpenSearch, from 5.0 on) keeps the same ``test`` beside
  ``pscheduler`` and a short ``result``: ``throughput``, ``packets_sent``, ``packets_lost``. A
  search wraps documents (`datacollect.measurement.json_texts.unwrapped`).

The formats are those of https://github.com/perfsonar/pscheduler (result schema of the throughput
test) and https://github.com/perfsonar/logstash (``06-result_throughput.conf``). Its older archive,
esmond, gives series without hosts. There tables are to be taken, which ``esmond-ps-get`` and
``esmond-ps-get-bulk`` write with ``--output-format csv``: ``source``, ``destination``,
``event_type``, ``timestamp`` (UTC) and ``value``, bits per second where the event type is
``throughput``; rows of other types measure no bandwidth. Rows whose ``summary_type`` is not
``base`` are averages of others over a ``summary_window``.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.addresses import host_of
from datacollect.files.units import bytes_per_s_from_bit_per_s
from datacollect.measurement.instants import seconds_since_1970
from datacollect.measurement.outcomes import (
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
from datacollect.measurement.readers import Reader, TableKind

if TYPE_CHECKING:
    from collections.abc import Mapping

Tree: TypeAlias = "dict[str, Any]"

THROUGHPUT = "throughput"

# Where documents say when the test began, the surest first.
_STARTS = (
    ("run", "start-time"),
    ("pscheduler", "start_time"),
    ("schedule", "start"),
    ("@timestamp",),
)


def kind_of_test(tree: Any) -> str | None:
    """Return which test a document of an archiver is about; None where it is none of theirs.

    >>> kind_of_test({"test": {"type": "rtt", "spec": {}}, "result": {}})
    'rtt'
    """
    test = tree.get("test") if isinstance(tree, dict) else None
    # A run that failed may have no result at all.
    has_result = isinstance(tree, dict) and isinstance(tree.get("result", ""), dict | None)
    if not isinstance(test, dict) or not has_result:
        return None
    return test["type"] if isinstance(test.get("type"), str) else None


class _PerfSonar(Reader):
    def reads_document(self, tree: Any) -> bool:
        return kind_of_test(tree) is not None or bool(_lacks(tree))

    def outcome(self, tree: Any, place: str, names: Mapping[str, str] | None) -> Outcome:
        kind = kind_of_test(tree)
        if kind == THROUGHPUT:
            return outcome_of_run(tree, place, names)
        if kind is None:
            raise ProblemError(
                f"{place}: is esmond's answer, which does not say {_lacks(tree)}; take what "
                "`esmond-ps-get --output-format csv` writes"
            )
        return Outcome(place, other_kind=kind)


def _lacks(tree: Any) -> str:
    """Return what an answer of esmond's interface does not say; empty where it is none."""
    if isinstance(tree, dict) and {"ts", "val"} <= tree.keys():
        return "which hosts were measured"
    if isinstance(tree, dict) and {"metadata-key", "event-types"} <= tree.keys():
        return "what was measured"
    return ""


PERFSONAR = _PerfSonar(
    name="perfSONAR",
    text="what perfSONAR's archiver keeps, or its CSV",
    document="a throughput test as perfSONAR's archiver keeps it, with keys test and result",
    tables=(
        TableKind(
            "perfSONAR",
            {
                "source": "from",
                "destination": "to",
                "timestamp": "time",
                "value": "bandwidth_bit_per_s",
            },
            only={"event_type": THROUGHPUT},
            tests={"summary_type": ("base", "")},
            unlike=("summary_type", "summary_window", "tool_name"),
        ),
    ),
)


def outcome_of_run(tree: Tree, place: str, names: Mapping[str, str] | None = None) -> Outcome:
    """Return what an archived throughput test says.

    Parameters
    ----------
    tree : dict
    place : str
        File, and which test in it, for messages.
    names : mapping from str to str, optional
        Host's name by what the test calls it; others keep theirs.

    Raises
    ------
    ProblemError
        The document lacks hosts, time or a rate.
    """
    spec, result = tree["test"].get("spec"), tree["result"]
    if not isinstance(spec, dict):
        raise ProblemError(f"{place}: test.spec is missing; give the whole document")
    content = json.dumps(tree, sort_keys=True)
    source, destination = _hosts(tree, spec, names or {}, place)
    if result is None:
        failure = f"{place}: the test failed: it has no result, got null"
        return Outcome(place, failures=(failure,), content=content)
    if result.get("succeeded") is False:
        why = result.get("error") or "no reason is given"
        failure = f"{place}: the test failed, perfSONAR says {str(why).strip()[:200]!r}"
        return Outcome(place, failures=(failure,), content=content)
    try:
        rate_bytes_per_s, duration_s = _measured(result, spec, place)
    except FailedTestError as error:
        return Outcome(place, failures=(str(error),), content=content)
    streams = STREAMS.read(spec.get("parallel", 1), f"{place}: test.spec.parallel")
    limit = spec.get("bandwidth", 0)
    _require_number(limit, f"{place}: test.spec.bandwidth")
    window = spec.get("window-size", 0)
    _require_number(window, f"{place}: test.spec.window-size")
    sample = Sample(
        source,
        destination,
        _start_s(tree, place),
        rate_bytes_per_s,
        round(rate_bytes_per_s * duration_s),
        duration_s,
        streams,
        "UDP" if spec.get("udp") else "TCP",
        narrowest(
            [
                (RATE_OPTION, bytes_per_s_from_bit_per_s(limit) * streams),
                (WINDOW_OPTION, rate_of_window(window, _round_trip_s(result), streams)),
            ]
        ),
    )
    return Outcome(place, (sample,), identity=_run(tree), content=content)


def _run(tree: Tree) -> str:
    """Return what names the run; ``""``: nothing does."""
    named = (_within(tree, keys) for keys in (("run", "href"), ("pscheduler", "run_href"), ("id",)))
    return next((name for name in named if isinstance(name, str) and name), "")


def _hosts(tree: Tree, spec: Tree, names: Mapping[str, str], place: str) -> tuple[str, str]:
    participants = tree.get("participants") or _within(tree, ("pscheduler", "participants")) or []
    source = spec.get("source") or (participants[0] if participants else None)
    destination = spec.get("dest")
    for key, value in (("source", source), ("dest", destination)):
        if not isinstance(value, str) or not value:
            raise ProblemError(f"{place}: test.spec.{key} must be a host's name, got {value!r}")
    source, destination = (host_of(str(h), names) or str(h) for h in (source, destination))
    if spec.get("reverse"):
        source, destination = destination, source
    if source == destination:
        raise ProblemError(f"{place}: a test from {source!r} to itself; it measures no link")
    return source, destination


def _measured(result: Tree, spec: Tree, place: str) -> tuple[float, float]:
    """Return bytes per second and seconds of a test."""
    whole = _within(result, ("summary", "summary"))
    if isinstance(whole, dict):
        place = f"{place}: result.summary.summary"
        key = "receiver-throughput-bits"
        key = key if whole.get(key) is not None else "throughput-bits"
        rate, sent, lost = whole.get(key), whole.get("sent"), whole.get("lost")
        begin, end = whole.get("start", 0), whole.get("end")
        for name, value in (("start", begin), ("end", end)):
            _require_number(value, f"{place}.{name}")
        duration_s = float(end - begin)
    else:
        place, key = f"{place}: result", THROUGHPUT
        rate, sent, lost = (result.get(k) for k in (key, "packets_sent", "packets_lost"))
        duration_s = _duration_s(spec.get("duration"), place)
    if rate is None:
        raise FailedTestError(f"{place}.{key} is missing, so nothing was measured")
    _require_number(rate, f"{place}.{key}")
    arrived = 1.0
    if spec.get("udp") and key != "receiver-throughput-bits":
        # The rate is the sender's.
        require_losses(place, sent, lost)
        _require_number(sent, f"{place}: packets sent")
        _require_number(lost, f"{place}: packets lost")
        if not sent:
            raise FailedTestError(f"{place}: no packet was sent, so nothing was measured")
        arrived = max(0.0, 1 - lost / sent)
    rate_bytes_per_s = bytes_per_s_from_bit_per_s(rate) * arrived
    require_arrived(place, rate_bytes_per_s, rate_bytes_per_s * duration_s, duration_s)
    return rate_bytes_per_s, duration_s


def _round_trip_s(result: Tree) -> float:
    """Return the mean round trip of the streams, which are said in microseconds; 0: not said."""
    streams = _within(result, ("summary", "streams"))
    said = [_within(each, ("rtt",)) for each in (streams if isinstance(streams, list) else [])]
    found = [rtt for rtt in said if type(rtt) in (int, float) and 0 < rtt < math.inf]
    return sum(found) / len(found) / 1e6 if found else 0.0


def _duration_s(said: Any, place: str) -> float:
    """Return a duration in seconds: the archive's number, or ISO 8601 as specifications have it.

    >>> _duration_s("PT1M30S", ""), _duration_s(10, "")
    (90.0, 10.0)
    """
    if isinstance(said, str):
        found = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?", said, re.ASCII)
        if found and any(found.groups()):
            hours, minutes, seconds = (float(part or 0) for part in found.groups())
            return hours * 3600 + minutes * 60 + seconds
    _require_number(said, f"{place}: test.spec.duration")
    return float(said)


def _start_s(tree: Tree, place: str) -> float:
    for keys in _STARTS:
        said = _within(tree, keys)
        if isinstance(said, str):
            found = seconds_since_1970(said)
            if found is not None:
                return found
    raise ProblemError(
        f"{place}: does not say when the test began: run.start-time, pscheduler.start_time, "
        "schedule.start or @timestamp must be a date and time"
    )


def _within(tree: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _require_number(value: Any, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProblemError(f"{place} must be a number, got {value!r}")
    if not 0 <= value <= sys.float_info.max:
        raise ProblemError(f"{place} must be >= 0 and finite, got {value!s:.40}")
