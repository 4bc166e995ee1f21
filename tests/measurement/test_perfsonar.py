"""Throughput tests as perfSONAR's archivers keep them, made by hand after their schemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.measurement.samples import read_samples

if TYPE_CHECKING:
    from pathlib import Path

# 12:00 UTC on the first of May 2024.
NOON_S = 1_714_564_800


def run(**changes: Any) -> dict[str, Any]:
    """Return what pScheduler's HTTP archiver sends: 8 Gbit/s for 10 s."""
    return {
        "test": {
            "type": "throughput",
            "spec": {"source": "lyon", "dest": "geneva", "duration": "PT10S"} | changes,
        },
        "tool": {"name": "iperf3", "version": "1.0"},
        "participants": ["lyon", "geneva"],
        "run": {"start-time": "2024-05-01T14:00:00+02:00", "href": f"https://lyon/{len(changes)}"},
        "result": {
            "succeeded": True,
            "diags": "…",
            "intervals": [],
            "summary": {
                "streams": [],
                "summary": {
                    "start": 0,
                    "end": 10.0,
                    "throughput-bits": 8e9,
                    "throughput-bytes": 1e10,
                },
            },
        },
    }


def document(**result: Any) -> dict[str, Any]:
    """Return what perfSONAR's archive keeps of the same."""
    tree = run()
    return {
        "test": tree["test"],
        "pscheduler": {"start_time": "2024-05-01T12:00:00Z", "run_href": "https://lyon/1"},
        "result": {"succeeded": True, "throughput": 8e9} | result,
    }


def read(folder: Path, tree: object, **options: Any) -> list[list[Any]]:
    path = folder / "archive.json"
    path.write_text(json.dumps(tree))
    return read_samples(path, **options).to_numpy().tolist()


SAMPLE = ["lyon", "geneva", NOON_S, 1e9, 10**10, 10.0, 1, "TCP"]


@pytest.mark.parametrize(
    "tree",
    [
        run(),
        [run()],
        document(),
        {"hits": {"total": 1, "hits": [{"_source": document()}]}},
        {"_source": document()},
    ],
)
def test_what_archivers_keep_is_read_as_it_is(tmp_path: Path, tree: object) -> None:
    assert read(tmp_path, tree) == [SAMPLE]


def test_what_the_receiver_got_counts(tmp_path: Path) -> None:
    tree = run()
    tree["result"]["summary"]["summary"]["receiver-throughput-bits"] = 4e9
    assert read(tmp_path, tree)[0][3] == 5e8


def test_of_udp_what_was_lost_is_subtracted(tmp_path: Path) -> None:
    tree = run(udp=True)
    tree["result"]["summary"]["summary"] |= {"sent": 1000, "lost": 250}
    assert read(tmp_path, tree)[0][3] == 7.5e8


def test_a_reverse_test_measures_the_other_direction(tmp_path: Path) -> None:
    assert read(tmp_path, run(reverse=True, parallel=4))[0] == [
        *("geneva", "lyon", NOON_S, 1e9, 10**10, 10.0, 4, "TCP")
    ]


def test_the_first_participant_is_the_source_where_the_test_names_none(tmp_path: Path) -> None:
    tree = run()
    del tree["test"]["spec"]["source"]
    assert read(tmp_path, tree) == [SAMPLE]


def test_tests_of_other_types_are_left_out_and_said(tmp_path: Path) -> None:
    other = {"test": {"type": "rtt", "spec": {}}, "result": {"succeeded": True}}
    with pytest.warns(DatacollectWarning, match="they measure no bandwidth: 1 test of type rtt"):
        assert read(tmp_path, [run(), other]) == [SAMPLE]


def test_a_test_told_to_send_at_a_rate_is_noted(tmp_path: Path) -> None:
    with pytest.warns(DatacollectWarning, match="1 test reached the rate set for it"):
        read(tmp_path, run(bandwidth=8_000_000_000))


def test_a_run_archived_twice_counts_once(tmp_path: Path) -> None:
    with pytest.warns(DatacollectWarning, match="each test counts once"):
        assert read(tmp_path, [run(), run()]) == [SAMPLE]


def _changed(change: Any, tree: dict[str, Any]) -> dict[str, Any]:
    change(tree)
    return tree


def _summary(tree: dict[str, Any]) -> dict[str, Any]:
    return tree["result"]["summary"]["summary"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t["result"].update(succeeded=False, error="no route"),
            r"perfSONAR says 'no rou",
        ),
        (lambda t: _summary(t).update({"throughput-bits": 0}), r"summary: nothing arrived in 10 s"),
        (
            lambda t: _summary(t).update({"throughput-bits": None}),
            r"bits is missing, so nothing was",
        ),
        (lambda t: _summary(t).update({"end": 0}), r"the test lasted 0 s"),
    ],
)
def test_runs_that_measured_nothing_failed(tmp_path: Path, change: Any, message: str) -> None:
    tree = _changed(change, run(parallel=2))
    with pytest.raises(ProblemError, match=message + r".*; repeat the test$"):
        read(tmp_path, tree)
    with pytest.warns(DatacollectWarning, match="1 test that failed skipped"):
        assert read(tmp_path, [run(), tree], skip_failed=True) == [SAMPLE]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["test"].pop("spec"), r"test\.spec is missing"),
        (lambda t: t["test"]["spec"].pop("dest"), r"test\.spec\.dest must be a host's name"),
        (lambda t: t["test"]["spec"].update(dest="lyon"), r"a test from 'lyon' to itself"),
        (lambda t: t.pop("run"), r"does not say when the test began"),
        (lambda t: _summary(t).update({"end": "x"}), r"summary\.end must be a number, got 'x'"),
        (lambda t: _summary(t).update({"throughput-bits": -1}), r"must be >= 0 and finite, got -1"),
        *(
            (
                lambda t, n=n: t["test"]["spec"].update(parallel=n),
                r"spec\.parallel must be a whole number of connections >= 1",
            )
            for n in ("x", 0, 1.5, -2, None)
        ),
    ],
)
def test_incomplete_documents_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        read(tmp_path, _changed(change, run()), skip_failed=True)


def test_names_are_given_by_what_tests_call_hosts(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(run()))
    from datacollect.measurement.reading import read_measurements

    found = read_measurements([path], names={"lyon": "L"})
    assert found.samples[["from", "to"]].to_numpy().tolist() == [["L", "geneva"]]
