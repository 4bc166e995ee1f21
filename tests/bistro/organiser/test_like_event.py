"""Events like another one: what the draft leaves out, with new logs and later times."""

from __future__ import annotations

import tomllib

import pytest
from instances.bistros import bistro_event
from instances.events import key_of

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.organiser.like_event import like
from datacollect.bistro.organiser.new_event import new_event
from datacollect.commands.main import run
from datacollect.errors import ProblemError

# Summer time ends in the night before 1 November.
TIMES = {
    "opens": "2026-10-01T00:00:00+02:00",
    "deadline": "2026-10-20T23:59:59+02:00",
    "collect_until": "2026-10-22T12:00:00+02:00",
    "keep_until": "2027-10-22T12:00:00+02:00",
    "timezone": "Europe/Berlin",
}


@pytest.fixture
def other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdicts = {"key": key_of("verdicts").public, "url": "https://dest.example:8443"}
    bistro_event(tmp_path, verdicts=verdicts, **TIMES)
    return tmp_path / "event.toml"


def made_like(other, draft, ports_up=0):
    (other.parent / "draft.toml").write_text(draft)
    return new_event("draft.toml", "longer.toml", (), other, ports_up)


def test_a_draft_says_what_differs_and_the_rest_is_the_same(other):
    made = made_like(other, 'name = "Longer time"\ndeadline = "2026-11-10"\n').event
    before = read_event(other.read_bytes())
    assert made.name == "Longer time"
    for name in ("organiser", "recipients", "witnesses", "quorum", "counts", "limits", "bistros"):
        assert getattr(made, name, None) == getattr(before, name, None)
    assert made.id != before.id
    # Logs are others', by the same keys.
    for one, two in zip(made.log_keys, before.log_keys, strict=True):
        assert (one.key, one.name != two.name) == (two.key, True)


def test_what_follows_the_deadline_keeps_its_distance_by_the_clock(other):
    made_like(other, 'deadline = "2026-11-10"\n')
    tree = tomllib.loads((other.parent / "longer.toml").read_text())
    assert [str(tree[key]) for key in ("opens", "deadline", "collect_until", "keep_until")] == [
        "2026-10-01 00:00:00+02:00",
        "2026-11-10 23:59:59+01:00",
        "2026-11-12 12:00:00+01:00",
        "2027-11-12 12:00:00+01:00",
    ]


def test_what_the_draft_says_of_times_stands(other):
    draft = 'deadline = "2026-11-10"\ncollect_until = "2026-12-01T12:00"\n'
    made_like(other, draft)
    tree = tomllib.loads((other.parent / "longer.toml").read_text())
    assert str(tree["collect_until"]) == "2026-12-01 12:00:00+01:00"
    made_like(other, 'timezone = "UTC"\n')
    tree = tomllib.loads((other.parent / "longer.toml").read_text())
    assert str(tree["deadline"]) == "2026-10-20 21:59:59+00:00"


def test_each_server_serves_one_event_which_is_said(other):
    made = made_like(other, 'name = "Longer"\n')
    (said,) = [each for each in made.cautions if "names the same" in each]
    assert "https://north.example" in said
    assert "https://dest.example:8443" in said
    assert not [each for each in made.event.witnesses if each.url in said]
    made = made_like(other, 'name = "Longer"\n', ports_up=100)
    assert not [each for each in made.cautions if "names the same" in each]
    before = read_event(other.read_bytes())
    assert made.event.bistros[0].url == "https://north.example:543"
    assert made.event.verdicts_url == "https://dest.example:8543"
    assert made.event.witnesses == before.witnesses


def test_other_witnesses_have_a_quorum_of_their_own(other):
    tree = tomllib.loads(other.read_text())
    assert "quorum" in like({}, other.read_bytes(), "other")
    assert "quorum" not in like({"witnesses": tree["witnesses"][:3]}, other.read_bytes(), "other")


@pytest.mark.parametrize(
    ("draft", "ports_up", "why"),
    [
        ('deadline = "soon"\n', 0, "deadline must be a date and time"),
        ('deadline = "2026-10-25T02:30:00"\n', 0, "show 2026-10-25 02:30 twice"),
        ('timezone = "Mars/Base"\n', 0, "Mars/Base"),
        ('deadline = "2026-09-01"\n', 0, "deadline"),
        ('name = "x"\n', 60_000, "which does not exist; give another number"),
    ],
)
def test_what_cannot_be_is_named(other, draft, ports_up, why):
    with pytest.raises(ProblemError, match=why):
        made_like(other, draft, ports_up)
    assert not (other.parent / "longer.toml").exists()


def test_by_the_command(other, capsys):
    (other.parent / "draft.toml").write_text('deadline = "2026-11-10"\n')
    arguments = ["event", "new", "draft.toml", "-o", "longer.toml"]
    assert run([*arguments, "--ports-up", "1"]) == 2
    assert "name that event with --like" in capsys.readouterr().err
    assert run([*arguments, "--like", "event.toml", "--ports-up", "1"]) == 0
    assert read_event((other.parent / "longer.toml").read_bytes()).name
