"""The commands pull and status: what they print, and their exit codes."""

import json

import pytest

from datacollect.commands.main import run


def test_an_absent_file_is_bad_input(tmp_path, capsys):
    assert run(["pull", str(tmp_path / "c.toml"), "--into", str(tmp_path)]) == 2
    assert "no such file" in capsys.readouterr().err


def test_status_of_a_folder_without_a_pull_is_bad_input(tmp_path, capsys):
    assert run(["status", str(tmp_path)]) == 2
    assert "nothing was pulled into it" in capsys.readouterr().err


@pytest.fixture
def nobody(tmp_path):
    """A collection whose only agent does not answer."""
    from datacollect.signing import new_private_key, write_private_key

    write_private_key(tmp_path / "key", new_private_key())
    (tmp_path / "c.toml").write_text(
        'format = "datacollect-collection/1"\ndestination = "D"\nkey = "key"\n'
        f'[agents.S1]\nurl = "https://127.0.0.1:1"\nfingerprint = "sha256:{"0" * 64}"\n'
        "[limits]\npatience_s = 0.1\n"
    )
    return tmp_path


def test_what_cannot_be_had_is_exit_1_and_named(nobody, capsys):
    into = str(nobody / "into")
    assert run(["pull", str(nobody / "c.toml"), "--into", into, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["complete"] is False
    assert [entry["source"] for entry in said["missing"]] == ["S1"]
    assert set(said) >= {
        "complete",
        "bytes",
        "files",
        "predicted_makespan_s",
        "makespan_s",
        "method",
        "routes",
        "refetched_bytes",
        "missing",
    }
    assert run(["pull", str(nobody / "c.toml"), "--into", into]) == 1
    assert "missing: S1: all of it" in capsys.readouterr().out


def test_a_missing_key_is_bad_input(nobody, capsys):
    (nobody / "key").unlink()
    assert run(["pull", str(nobody / "c.toml"), "--into", str(nobody / "into")]) == 2
    assert "key: no such file" in capsys.readouterr().err
