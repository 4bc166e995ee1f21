"""Entries by name: our own cost no look for packages, and what packages do wrongly is said."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from fractions import Fraction

import pytest
from instances.installed_packages import install_package

from datacollect.errors import ProblemError
from datacollect.files.registry import Registry

GROUP = "datacollect.rates"


def rates() -> Registry[Fraction]:
    return Registry("rate", GROUP, Fraction, {"one": "decimal:DefaultContext", "half": "no:HALF"})


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a package `name` with entry points, and a module of its own."""

    def installed(name, points, source="from fractions import Fraction\nTHIRD = Fraction(1, 3)\n"):
        folder = install_package(tmp_path / name, name, {GROUP: points}, {f"{name}_rates": source})
        monkeypatch.syspath_prepend(folder)

    return installed


def test_another_package_brings_an_entry(install):
    install("alpha", {"third": "alpha_rates:THIRD"})
    assert rates().get("third") == Fraction(1, 3)
    assert rates().names() == ("one", "half", "third")


def test_listings_import_nothing(install):
    install("beta", {"fifth": "beta_rates:FIFTH"}, source="raise RuntimeError")
    assert rates().names() == ("one", "half", "fifth")


def test_our_own_names_look_for_no_packages(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", None)
    assert rates().get("one").prec == 28


def test_what_help_says_of_formats_and_readers_loads_nothing_heavy():
    code = """
import sys
from datacollect.exports.formats import EXPORTS
from datacollect.measurement.readers import READERS
assert all(entry.text for entry in (*EXPORTS.entries(), *READERS.entries()))
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "pandas", "pyarrow", "typer"}


def test_an_unknown_name_is_refused_with_the_nearest_also_of_packages(install):
    install("gamma", {"third": "gamma_rates:THIRD"})
    with pytest.raises(ProblemError, match=r"^there is no rate 'thrid'; did you mean 'third'\?$"):
        rates().get("thrid")
    with pytest.raises(ProblemError, match=r"no rate 'xyz'; there are one, half, third$"):
        rates().get("xyz")


@pytest.mark.parametrize(
    ("module", "source", "why"),
    [
        ("delta_lacks", "", "cannot be imported: AttributeError"),
        ("delta_needs", "import not_there", "cannot be imported: ModuleNotFoundError"),
        ("delta_fails", "1 / 0", "cannot be imported: ZeroDivisionError"),
        ("delta_other", "RATE = 'x'", "must be of the class fractions.Fraction, got str"),
    ],
)
def test_a_faulty_entry_is_refused_with_its_package(tmp_path, monkeypatch, module, source, why):
    points = {GROUP: {"x": f"{module}:RATE"}}
    monkeypatch.syspath_prepend(install_package(tmp_path, "delta", points, {module: source}))
    with pytest.raises(ProblemError, match=f"^the package delta 1.0: its rate 'x' .*{why}"):
        rates().get("x")
    assert rates().get("one").prec == 28


def test_a_name_of_ours_is_not_taken(install):
    install("epsilon", {"half": "epsilon_rates:THIRD"})
    with pytest.raises(ProblemError, match=r"^the package epsilon 1.0: brings rate 'half', a name"):
        rates().names()


def test_a_name_that_two_packages_bring_is_refused(install):
    install("zeta", {"third": "zeta_rates:THIRD", "other": "zeta_rates:THIRD"})
    install("eta", {"third": "eta_rates:THIRD"})
    both = "^the package eta 1.0 and the package zeta 1.0: each brings rate 'third'; uninstall"
    for asked in (rates().names, lambda: rates().get("third")):
        with pytest.raises(ProblemError, match=both):
            asked()
    assert rates().get("other") == Fraction(1, 3)
