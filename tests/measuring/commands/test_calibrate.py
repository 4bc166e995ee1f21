"""``datacollect host calibrate``: what is written, refused, and left alone."""

from __future__ import annotations

import json

import pytest
from instances.host_profiles import profile

from datacollect.commands.main import run
from datacollect.files import documents
from datacollect.machine.profile import host_profile
from datacollect.measuring.hosts import calibrating, disk_writes


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Have calibrations say what we say; return how to say what, and the profile's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(disk_writes, "NEEDED_BYTES", 1)

    def say(answer):
        def calibrated(*_, **__):
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(calibrating, "calibrated", calibrated)
        return tmp_path / "p.toml"

    return say


def test_a_profile_is_written_and_shown(given, capsys):
    path = given(profile())
    assert run(["host", "calibrate", "-o", "p.toml"]) == 0
    assert host_profile(path).parts == profile().parts
    out = capsys.readouterr().out
    assert "tls receives" in out
    assert "next: datacollect host predict p.toml --tls --to-disk" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_is_the_profile(given, capsys):
    given(profile())
    assert run(["host", "calibrate", "-o", "p.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["costs"] == profile().to_dict()["costs"]


def test_what_is_refused_is_named_and_the_rest_is_written(given, capsys):
    path = given(profile(refused={"tls": "others keep 34% of the processors busy"}))
    assert run(["host", "calibrate", "-o", "p.toml"]) == 1
    out, errors = capsys.readouterr()
    assert "predict" not in out  # it could not answer
    assert "refused: tls: others keep 34% of the processors busy" in errors
    assert "or with --anyway" in " ".join(errors.split())
    assert path.exists()


def test_an_interrupted_calibration_writes_nothing(given):
    path = given(KeyboardInterrupt())
    path.write_text("as it was")
    with pytest.raises(SystemExit, match="130"):
        run(["host", "calibrate", "-o", "p.toml"])
    assert path.read_text() == "as it was"
    assert [each.name for each in path.parent.iterdir()] == ["p.toml"]


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_killed_at_each_write_an_old_profile_stays_whole(given, monkeypatch, step):
    path = given(profile())
    path.write_text("as it was")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(documents.Path, step, killed)
        with pytest.raises(SystemExit, match="130"):
            run(["host", "calibrate", "-o", "p.toml"])
    assert path.read_text() == "as it was"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-o", "p.toml", "--seconds", "1"), "--seconds must be from 10 to 3600, got 1"),
        (("-o", "."), "is a folder; name a file"),
        (("-o", "none/p.toml"), "make the folder first"),
        (("-o", "p.toml", "--disk", "none"), "--disk none: no such folder"),
    ],
)
def test_bad_input_is_named_before_anything_is_measured(given, words, says, capsys, tmp_path):
    given(AssertionError("measured"))
    assert run(["host", "calibrate", *words]) == 2
    assert says in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
