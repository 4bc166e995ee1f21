"""Events, tickets and amendments by the command line, from what an organiser writes."""

from __future__ import annotations

import csv
import json
import stat

import pyrage
import pytest
from instances.events import RECIPIENTS, draft_text, key_of

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import Ticket, admitted
from datacollect.commands.main import run
from datacollect.net.keys import write_private_key


@pytest.fixture
def organiser(tmp_path, monkeypatch):
    """A folder with a draft, a key, and people."""
    monkeypatch.chdir(tmp_path)
    write_private_key("organiser.key", key_of("organiser"))
    (tmp_path / "draft.toml").write_text(draft_text())
    (tmp_path / "people.csv").write_text("person,mail\nann,a@x\nbob,b@x\n")
    return tmp_path


def answered(capsys, *arguments: str) -> tuple[int, dict]:
    code = run([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert out, err
    return code, json.loads(out)


def refused(capsys, *arguments: str) -> str:
    assert run([*arguments]) == 2
    return capsys.readouterr().err


def test_event_says_its_id_what_it_withstands_and_what_should_be_better(organiser, capsys):
    code, told = answered(capsys, "event", "new", "draft.toml", "-o", "event.toml")
    event = read_event((organiser / "event.toml").read_bytes())
    assert (code, told["event"], told["opened"]) == (0, event.id.hex(), [])
    assert "3 of the 4 witnesses" in told["withstands"][0]
    assert any("2 recipients were not tried" in each for each in told["cautions"])
    again = refused(capsys, "event", "new", "draft.toml", "-o", "event.toml")
    assert "exists already" in again


def test_identity_that_opens_is_named_and_another_is_refused(organiser, capsys):
    identity, other = (pyrage.x25519.Identity.generate() for _ in range(2))
    recipients = [str(identity.to_public()), *RECIPIENTS]
    (organiser / "draft.toml").write_text(draft_text(recipients=recipients))
    (organiser / "own.txt").write_text(f"# mine\n{identity}\n")
    (organiser / "other.txt").write_text(f"{other}\n")
    new = ("event", "new", "draft.toml", "-o", "event.toml", "--identity")
    assert "opens nothing" in refused(capsys, *new, "other.txt")
    assert not (organiser / "event.toml").exists()
    code, told = answered(capsys, *new, "own.txt")
    assert (code, told["opened"]) == (0, [str(identity.to_public())])


def test_draft_without_an_organiser_is_refused_with_the_command_that_helps(organiser, capsys):
    (organiser / "draft.toml").write_text(draft_text(organiser=None))
    said = refused(capsys, "event", "new", "draft.toml", "-o", "event.toml")
    assert "draft.toml: organiser must be" in said
    assert "datacollect keys new" in said


@pytest.fixture
def event(organiser, capsys):
    """An event, as its organiser has published it."""
    assert run(["event", "new", "draft.toml", "-o", "event.toml"]) == 0
    capsys.readouterr()
    return read_event((organiser / "event.toml").read_bytes())


TICKETS = (
    *("event", "tickets", "event.toml", "--people", "people.csv"),
    *("--key", "organiser.key", "-o", "out"),
)


def test_each_person_gets_a_ticket_and_a_second_run_adds_only_who_is_new(organiser, event, capsys):
    assert answered(capsys, *TICKETS)[1]["new"] == 2
    ann = organiser / "out" / "ann.ticket"
    before = ann.read_bytes()
    assert stat.S_IMODE(ann.stat().st_mode) == 0o600
    with (organiser / "people.csv").open("a") as people:
        people.write("eve,e@x\n")
    code, told = answered(capsys, *TICKETS)
    assert (code, told["new"], told["kept"], ann.read_bytes()) == (0, 1, 2, before)
    rows = list(csv.DictReader((organiser / "out" / "tickets.csv").read_text().splitlines()))
    assert [row["person"] for row in rows] == ["ann", "bob", "eve"]
    seeds = set()
    for row in rows:
        ticket = Ticket.from_file(organiser / "out" / f"{row['person']}.ticket")
        found = admitted(ticket.token, event, 0)
        assert (found.id, found.token_sha256.hex()) == (row["ticket"], row["token_sha256"])
        # Each has a key of its own, which nothing but its file holds.
        assert found.key == ticket.key.public
        assert ticket.text.startswith('format = "datacollect-ticket/2"\n')
        seeds.add(ticket.seed.hex())
    assert len({row["ticket"] for row in rows}) == len(seeds) == 3
    assert not any(seed in (organiser / "out" / "tickets.csv").read_text() for seed in seeds)


def listed(organiser) -> list[str]:
    rows = csv.DictReader((organiser / "out" / "tickets.csv").read_text().splitlines())
    return [row["person"] for row in rows]


def test_links_bring_each_persons_ticket_to_the_page_behind_the_sign_that_no_server_sees(
    organiser, event, capsys
):
    tickets = ("event", "tickets", "event.toml", "--people", "people.csv")
    arguments = (*tickets, "--key", "organiser.key", "-o", "t")
    assert answered(capsys, *arguments)[0] == 0
    assert not [*(organiser / "t").glob("*.link")]
    # Also for tickets that are there already.
    assert answered(capsys, *arguments, "--page", "https://hand-in.example/")[0] == 0
    for name in ("ann", "bob"):
        path = organiser / "t" / f"{name}.link"
        link = path.read_text().strip()
        assert link.startswith("https://hand-in.example/#t=")
        told = read_event((organiser / "event.toml").read_bytes(), "event.toml")
        file = Ticket.from_file(organiser / "t" / f"{name}.ticket")
        assert Ticket.from_link(link, told) == file
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_list_keeps_whoever_stands_there_already(organiser, event, capsys):
    """Other people another time, and a second ticket of somebody whose first one still counts."""
    assert run([*TICKETS]) == 0
    (organiser / "people.csv").write_text("person\neve\n")
    assert run([*TICKETS]) == 0
    assert listed(organiser) == ["ann", "bob", "eve"]
    (organiser / "out" / "eve.ticket").unlink()
    assert run([*TICKETS]) == 0
    assert listed(organiser) == ["ann", "bob", "eve", "eve"]
    capsys.readouterr()


def test_list_with_columns_of_somebody_is_not_written_over(organiser, event, capsys):
    assert run([*TICKETS]) == 0
    own = organiser / "out" / "tickets.csv"
    text = own.read_text().replace("token_sha256", "mail")
    own.write_text(text)
    assert "must have the columns person, ticket, token_sha256, token alone" in refused(
        capsys, *TICKETS
    )
    assert own.read_text() == text


@pytest.mark.parametrize(
    ("people", "said"),
    [
        ("person\nann\nbob\nANN\n", "'ann' in lines 2 and 4"),
        ("person\na\x07b\n", "line 2"),
        ("number\nann\n", "must have the column person"),
    ],
)
def test_doubles_and_what_is_no_name_are_refused_before_a_ticket_is_made(
    organiser, event, capsys, people, said
):
    (organiser / "people.csv").write_text(people)
    assert said in refused(capsys, *TICKETS)
    assert not (organiser / "out").exists()


def test_no_name_leads_out_of_the_folder(organiser, event):
    (organiser / "people.csv").write_text("person\n../ann\n.hidden\n")
    assert run([*TICKETS]) == 0
    assert listed(organiser) == ["../ann", ".hidden"]
    assert not [*organiser.glob("ann*")]
    assert len([*(organiser / "out").glob("[!.]*.ticket")]) == 2


def test_ticket_of_another_event_in_the_folder_is_kept_and_named(organiser, event, capsys):
    assert run([*TICKETS]) == 0
    assert run(["event", "new", "draft.toml", "-o", "other.toml"]) == 0
    capsys.readouterr()
    other = [each.replace("event.toml", "other.toml") for each in TICKETS]
    assert "ann.ticket: the ticket is for another event" in refused(capsys, *other)
    assert answered(capsys, *TICKETS)[1]["kept"] == 2


def test_key_of_somebody_else_signs_no_tickets(organiser, event, capsys):
    write_private_key("other.key", key_of("somebody"))
    other = [each.replace("organiser.key", "other.key") for each in TICKETS]
    assert "must be the organiser's" in refused(capsys, *other)
