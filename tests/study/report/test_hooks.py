"""Hooks are a folder, a file or a module; a second paper needs no change of the package."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from instances.made_hooks import judge
from instances.made_sweeps import cells_in, gains, write_sweep

import datacollect as dc
from datacollect.commands.main import run
from datacollect.study.report.hooks import load_hook

pytestmark = pytest.mark.usefixtures("empty_pictures")

OTHER_PAPER = {
    "__init__.py": '"""Another paper."""\nfrom other_paper.claims import judge, none\n',
    "claims.py": (
        "import pandas as pd\n"
        "import datacollect as dc\n"
        "from instances.made_hooks import judge as by_ratio\n"
        "def judge(sweeps):\n"
        "    return dc.Verdicts(by_ratio(sweeps).claims, title='Another paper')\n"
        "def none(sweeps):\n"
        "    return dc.Verdicts(by_ratio(sweeps).claims[:0])\n"
    ),
}


@pytest.fixture
def sweep_folder(tmp_path):
    """Of one setting: there is little to draw."""
    only = {"flows": ["60"], "ratio": ["1:1"], "udp": ["5 %"]}
    write_sweep(tmp_path / "sweep", "figure3", gains, only=only)
    return tmp_path / "sweep"


@pytest.fixture
def other_paper(tmp_path):
    """Its folder, and no trace of it in what is imported."""
    folder = tmp_path / "other_paper"
    folder.mkdir()
    for name, text in OTHER_PAPER.items():
        (folder / name).write_text(text)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


@pytest.mark.slow
def test_a_second_paper_is_a_folder_and_no_change_of_the_package(sweep_folder, other_paper, capsys):
    command = ["report", str(sweep_folder), "--json", "--verdicts"]
    assert run([*command, str(other_paper)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [claim["claim"] for claim in found["claims"]] == ["faster", "cheaper"]
    assert "claims.csv" in found["files"]
    assert found["known_hook"] is None
    page = (sweep_folder / "report" / "index.html").read_text(encoding="utf-8")
    assert '"title": "Another paper"' in page
    # Another function of it, which finds nothing: what it found before is taken away.
    assert run([*command, f"{other_paper}:none"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["claims"] == []
    assert not (sweep_folder / "report" / "claims.csv").exists()


def test_the_same_folder_is_imported_once(other_paper):
    assert load_hook(str(other_paper)) is load_hook(f"{other_paper}/:judge")


def test_a_module_that_can_be_imported_is_a_hook_too():
    assert load_hook("instances.made_hooks:judge").__module__ == "instances.made_hooks"
    assert load_hook("instances.made_hooks") is load_hook("instances.made_hooks:judge")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("no_such", "no such folder, file or module; name a folder with __init__.py"),
        ("no_such.module:judge", "no such folder, file or module"),
        (":judge", "there is no file __init__.py"),
        ("here/gone.py", "there is no file here/gone.py"),
        ("empty", "there is no file empty/__init__.py"),
        ("own.py:jugde", "there is no function 'jugde' in it; did you mean 'judge'?"),
        ("own.py:NUMBER", "there is no function 'NUMBER' in it"),
        ("cut.py", "line 1: invalid syntax; correct it"),
        ("text.txt", "text.txt is not Python source"),
        ("json.py", "a module is called 'json' already"),
    ],
)
def test_hooks_that_there_are_not(tmp_path, monkeypatch, capsys, place, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    Path("own.py").write_text("NUMBER = 1\ndef judge(sweeps): ...\n")
    Path("cut.py").write_text("1 +* 2\n")
    Path("text.txt").write_text("judge")
    Path("json.py").write_text("def judge(sweeps): ...\n")
    assert run(["report", "sweep", "--verdicts", place]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told.startswith(f"error: --verdicts {place}: ")
    assert message in told
    sys.modules.pop("own", None)


def test_what_is_no_verdicts_is_refused(sweep_folder):
    with pytest.raises(dc.ProblemError, match=r"must return datacollect\.Verdicts, got list"):
        dc.report(sweep_folder, verdicts=list)


def test_a_table_called_as_another_of_the_report_is_refused(sweep_folder):
    for name in ("claims", "sweeps"):

        def clash(sweeps, name=name):
            found = judge(sweeps)
            return replace(found, tables={name: found.tables["counts"]})

        with pytest.raises(dc.ProblemError, match=rf"{name}\.csv is another table of the report"):
            dc.report(sweep_folder, verdicts=clash)
        assert not (sweep_folder / "report").exists()


def test_a_table_called_as_a_sweep_is_the_hook_s(sweep_folder):
    """The study has a sweep `readings`, and its claims a table of that name."""

    def judge_figure3(sweeps):
        found = judge(sweeps)
        return replace(found, tables={"figure3": found.tables["counts"]})

    found = dc.report(sweep_folder, verdicts=judge_figure3)
    (row,) = cells_in(found.folder / "figure3.csv")
    assert row == {"sweep": "figure3", "seeds": "6"}
