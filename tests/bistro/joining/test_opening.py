"""The organiser's side: who has joined makes up the event, and nobody else."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from instances.events import event_bytes, key_of
from instances.ports import free_port

from datacollect.bistro.destination.keys import read_tickets
from datacollect.bistro.formats.event.fields import EVENT
from datacollect.bistro.formats.event.tickets import read_ticket
from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.joining import opening
from datacollect.bistro.joining.guests import JOIN
from datacollect.bistro.joining.opening import _whole_draft, begin_event, guests_of, invite
from datacollect.bistro.one_host.places import Places
from datacollect.bistro.one_host.quickstart import Request
from datacollect.bistro.one_host.setting_up import event_of, make_tickets, recipient_of
from datacollect.bistro.one_host.ways import Ways
from datacollect.errors import ProblemError, RefusedError
from datacollect.files.toml_tables import toml_of
from datacollect.net.keys import write_private_key

DEADLINE = "2090-01-31 18:00"


def half(host: str, role: str) -> dict[str, str]:
    public = key_of(host).public
    if role == "witness":
        return {"role": role, "url": f"https://{host}", "vkey": witness_key(host, public).text}
    return {"role": role, "url": f"https://{host}", "key": public} | (
        {"name": host} if role == "bistro" else {}
    )


def join(guests, line, told: dict[str, str]) -> None:
    text = json.dumps(told)
    guests.join(line.number, text, line.mac(JOIN + text.encode()), 0.0)


@pytest.fixture
def places(tmp_path):
    """An event that was begun, and that four hosts have joined."""
    (tmp_path / "people.csv").write_text("person\nAnn\n")
    ways = Ways("127.0.0.1", f"127.0.0.1:{free_port()}", is_trial=True)
    people = str(tmp_path / "people.csv")
    asked = Request("essay", "Asia/Tokyo", deadline=DEADLINE, people=people, ways=ways)
    places = Places(tmp_path / "essay")
    begin_event(asked, places, 4, 7)
    guests = guests_of(places)
    for i, role in enumerate(("witness", "witness", "service", "bistro")):
        join(guests, invite(places, guests, 7), half(f"h{i}.example", role))
    return places


def test_begun_again_with_something_else_it_is_taken_or_refused_never_passed_over(places, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("person\nAnn\nBob\n")
    begin_event(Request("essay", "UTC", deadline=DEADLINE, people=str(more)), places, 4, 7)
    assert places.people.read_bytes() == more.read_bytes()
    draft = places.draft.read_bytes()
    with pytest.raises(ProblemError, match=r"--deadline must be that of .*draft.toml, 2090-01-31"):
        begin_event(Request("essay", "UTC", deadline="2090-02-01 18:00"), places, 4, 7)
    assert places.draft.read_bytes() == draft


def test_destination_that_was_removed_can_read_nothing(places, tmp_path):
    guests = guests_of(places)
    other = recipient_of(tmp_path / "other.identity")
    told = {**half("d.example", "destination"), "collector": key_of("c").public, "recipient": other}
    join(guests, line := invite(places, guests, 7), told)
    tree = _whole_draft(places, guests.joined)
    assert other in tree["recipients"]
    # Something else was wrong with the event; then that host's file was removed.
    places.draft.write_text(toml_of(EVENT, tree))
    (places.folder / f"guests/{line.number}.json").unlink()
    recipients = _whole_draft(places, guests_of(places).joined)["recipients"]
    assert recipients == [recipient_of(each) for each in (places.identity, places.offline_identity)]


def test_destination_elsewhere_is_told_nothing_by_which_it_hands_in(places, tmp_path):
    """It knows each person's ticket by its token, as bistros do; keys stay here."""
    guests = guests_of(places)
    line = invite(places, guests, 7)
    own = recipient_of(tmp_path / "other.identity")
    told = {**half("d.example", "destination"), "collector": key_of("c").public, "recipient": own}
    join(guests, line, told)
    places.event.write_bytes(event_bytes())
    event = event_of(places)
    places.key("organiser").unlink()
    write_private_key(places.key("organiser"), key_of("organiser"))
    make_tickets(places, "https://hand-in.example")
    guest = next(each for each in guests.joined if each.number == line.number)
    sent = opening._told(places, event, guests.joined, guest)
    ticket = read_ticket(places.tickets / "Ann.ticket", event)
    assert ticket.seed.hex() not in json.dumps(sent)
    assert ticket.link not in json.dumps(sent)
    there = tmp_path / "there"
    there.mkdir()
    (there / "tickets.csv").write_text(sent["list"])
    assert read_tickets(there, event) == read_tickets(places.tickets, event)
    # Whoever is no destination is told of no ticket at all.
    others = [each for each in guests.joined if each.number != line.number]
    assert all(ticket.token not in str(opening._told(places, event, [], one)) for one in others)


def test_who_joins_while_the_organiser_compares_is_no_part_of_the_event(places):
    late = invite(places, guests_of(places), 7)
    asked: list = []

    class Reception(opening.Reception):
        def __init__(self, guests, *rest) -> None:
            super().__init__(guests, *rest)
            asked.append(guests)

    def may_open(joined) -> bool:
        with pytest.raises(RefusedError, match="has all its hosts"):
            join(asked[0], late, half("thief.example", "bistro"))
        asked.append(len(joined))
        return False

    server = mock.patch.object(opening, "Server")
    with server, mock.patch.object(opening, "Reception", Reception):
        said = opening.open_event(places, 4, print, may_open, print, print)
    assert (said, asked[1:]) == (0, [4])


def test_who_joins_once_the_event_is_made_is_refused_after_a_new_start_too(places):
    late = invite(places, guests_of(places), 7)
    places.event.write_bytes(event_bytes())
    seen: list = []

    def begun(reception, _):
        with pytest.raises(RefusedError, match="has all its hosts"):
            join(reception, late, half("thief.example", "bistro"))
        seen.append(late)
        raise KeyboardInterrupt

    receiving = mock.patch.object(opening, "receiving", side_effect=begun)
    kept = mock.patch.object(opening, "Reception", side_effect=lambda guests, *_: guests)
    with receiving, kept, pytest.raises(KeyboardInterrupt):
        opening.open_event(places, None, print, print, print, print)
    assert seen == [late]
