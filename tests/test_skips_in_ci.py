"""The rule of conftest.py: in CI a skip is a failure unless its reason is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

def test_that_skips():
    pytest.skip("no solver")

@pytest.mark.xfail
def test_that_is_expected_to_fail():
    assert False

def test_that_needs_measured_data(cloud_grids):
    pass
"""
MODULE_THAT_SKIPS = "import pytest; pytest.skip('no solver', allow_module_level=True)"


@pytest.fixture
def outcomes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run the tests above under our conftest.py, where no measured data are; count outcomes."""

    def run(ci: str, *options: str) -> dict[str, int]:
        monkeypatch.setenv("CI", ci)
        return pytester.runpytest_subprocess(*options).parseoutcomes()

    monkeypatch.delenv("DATACOLLECT_DATA", raising=False)
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = data")
    pytester.makepyfile(test_few=TESTS, test_module=MODULE_THAT_SKIPS)
    return run


@pytest.mark.slow
def test_a_skip_fails_in_ci_unless_its_reason_is_listed(outcomes):
    # Of the three skips only missing data are listed; a module that skips ends collection.
    options = ("--continue-on-collection-errors",)
    assert outcomes("true", *options) == {"failed": 1, "errors": 1, "skipped": 1, "xfailed": 1}


@pytest.mark.slow
def test_a_skip_is_a_skip_elsewhere(outcomes):
    assert outcomes("") == {"skipped": 3, "xfailed": 1}


@pytest.mark.slow
def test_a_data_folder_that_is_named_must_be_there(outcomes, monkeypatch):
    monkeypatch.setenv("DATACOLLECT_DATA", "/no/such/folder")
    assert outcomes("", "-m", "data") == {"errors": 1, "skipped": 1, "deselected": 2}
