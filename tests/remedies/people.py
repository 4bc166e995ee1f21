"""Remedies about people: their tickets, who has handed in what, and who is reminded."""

from __future__ import annotations

import json
import time
from contextlib import closing

from instances.collected import EVENT, EVENT_DATA, Collected
from instances.events import key_of
from instances.mail_servers import mail_server
from remedies.bistros import COLLECTOR, TICKETED, TICKETS, begun, destination, secrets
from remedies.trying import Example, call, in_new_folder, until

from datacollect.bistro.destination.people import HELD, PROMISED, Draft, HandedIn
from datacollect.bistro.destination.people_list import PeopleList
from datacollect.bistro.destination.reminding import SmtpConfig, reminders_of
from datacollect.bistro.formats.event.amendments import amended, read_amendment, sign_amendment
from datacollect.files.held_folder import Held

# Whenever the tests run there is time left.
FAR_S = 4_000_000_000
LIST = "event list d.toml --tickets tickets"
REMIND = "event remind d.toml --tickets tickets --people people.csv"
FORGET = "event forget d.toml Ann --tickets tickets"
ACCEPT = "event accept d.toml Ann e.toml --tickets tickets"
NOTHING_YET = "1 nothing yet"
FROM_LIST = COLLECTOR + TICKETS


def still_open(folder, until_s=FAR_S):
    """Leave what one who collects leaves while people may still hand in, or until then."""
    path = folder / "e.toml"
    path.write_bytes(EVENT_DATA)
    ends = dict.fromkeys(("deadline_s", "latest_s", "collect_until_s"), until_s)
    begun(folder, event_file=str(path), **ends)


def over(folder):
    still_open(folder, int(time.time()) - 600)


def moved(folder):
    (folder / "e.toml").rename(folder / "elsewhere.toml")


def put_back(folder):
    (folder / "elsewhere.toml").rename(folder / "e.toml")


def list_lost(folder):
    (path,) = folder.rglob("missing.csv")
    path.unlink()


def asked(line, *before, left=still_open, more=COLLECTOR, **files):
    """Ask about people who have tickets, beside what one who collects has left."""
    return destination(line, left, TICKETED, *before, more=more, **files)


def list_alone(folder):
    """Leave of the tickets what a destination on another host is sent."""
    for path in (folder / "tickets").iterdir():
        if path.name != "tickets.csv":
            path.unlink()


def token_changed(folder):
    path = folder / "tickets" / "tickets.csv"
    head, row, *rest = path.read_text().splitlines()
    (folder / "as-written.csv").write_text(path.read_text())
    path.write_text("\n".join([head, row[:-3], *rest]) + "\n")


def copied_again(folder):
    (folder / "as-written.csv").replace(folder / "tickets" / "tickets.csv")


def left_open(text):
    """Leave what is to be forgotten, as one who was interrupted."""
    return lambda folder: (folder / "into" / "forgetting.json").write_text(text)


def begun_for(person):
    lists = dict.fromkeys(("tickets", "entries", "files", "segments", "left"), ())
    tree = {"format": "datacollect-forgetting/1", "person": person, **lists}
    return left_open(json.dumps(tree))


def cancelled(folder):
    """Leave what one who collects leaves of an event that was cancelled."""
    still_open(folder)
    begun(folder, event_file=str(folder / "e.toml"), cancelled="no room")


def amended_by(*whys):
    """Cancel an event, for one reason after the other."""

    def sign():
        event = EVENT
        for number, why in enumerate(whys, 1):
            note = sign_amendment(event, {"cancelled": why}, number, key_of("organiser"))
            event = amended(event, [read_amendment(note, event)])

    return sign


def forgotten_while_collecting(folder):
    """Forget somebody while a destination has its log of verdicts."""
    with closing(Held(folder / "into" / "verdicts")):
        return call(FORGET)


def longer(more):
    """Make an event for who has longer time."""
    draft = 'name = "Longer time"\n'
    return destination(f"event new longer.toml -o l.toml {more}", longer_toml=draft)


def reminder_of(state):
    """Say what somebody is reminded of whose file has come so far."""

    def remind():
        with in_new_folder() as folder:
            person = HandedIn("Bob", email="b@x.example", drafts=(Draft(bytes(32), state),))
            standing = Collected(folder / "out").standing
            found = PeopleList(EVENT, standing, (person,), folder / "out")
            return " ".join(each.text(None) for each in reminders_of(found, EVENT.latest_s))

    return remind


def smtp(more, **files):
    """Read the file of a mail server."""

    def read():
        with in_new_folder(**files) as folder:
            path = folder / "smtp.toml"
            path.write_text(f'host = "mail.example"\nfrom = "a@x.example"\n{more}')
            SmtpConfig.from_file(path)

    return read


def mailed(*, at_its_port):
    """Mail reminders to a server, at its port or at one where nobody listens."""

    def run():
        with mail_server() as server:
            port = server.server_address[1] if at_its_port else 1
            text = f'host = "127.0.0.1"\nport = {port}\nfrom = "a@x.example"\nstarttls = false\n'
            people = "person,email\nAnn,ann@x.example\n"
            said = asked(
                f"{REMIND} --smtp smtp.toml",
                lambda folder: (folder / "people.csv").write_text(people),
                smtp_toml=text,
            )()
            assert len(server.said) == 1
            return said

    return run


EXAMPLES = [
    Example(
        "give --people for everybody's tickets, or --lost for one person's",
        destination("event tickets e.toml --key o.key -o tickets"),
        destination(TICKETED),
    ),
    Example(
        "--sheet prints links to a page: give its address by --page",
        destination(f"{TICKETED} --sheet cards.html"),
        destination(f"{TICKETED} --sheet cards.html --page https://page.example"),
    ),
    Example(
        "names no folder of tickets; give it with --tickets DIR",
        asked("event list d.toml"),
        until(NOTHING_YET, asked(LIST)),
    ),
    Example(
        "which has the names of tickets; `datacollect event tickets` wrote it where the tickets",
        asked("event list d.toml --tickets none"),
        until(NOTHING_YET, asked(LIST)),
    ),
    Example(
        "copy the list again, as `datacollect event tickets` has written it",
        destination(secrets, TICKETED, list_alone, token_changed, more=FROM_LIST),
        destination(secrets, TICKETED, list_alone, token_changed, copied_again, more=FROM_LIST),
    ),
    Example(
        "the event's file is no longer where `event run` read it; put it back",
        asked(LIST, moved),
        until(NOTHING_YET, asked(LIST, moved, put_back)),
    ),
    Example(
        "alone tells who has only a timestamp; `datacollect event run` writes it again",
        asked(LIST, list_lost),
        until(NOTHING_YET, asked(LIST, list_lost, still_open)),
    ),
    Example(
        "--ports-up counts from the ports of another event; name that event with --like",
        longer("--ports-up 1"),
        longer("--ports-up 1 --like e.toml"),
    ),
    Example(
        "which does not exist; give another number",
        longer("--ports-up 65500 --like e.toml"),
        longer("--ports-up 65 --like e.toml"),
    ),
    Example(
        "where both are at work at once give these others, or --ports-up",
        longer("--like e.toml"),
        longer("--like e.toml --ports-up 1"),
    ),
    Example(
        "`datacollect event list` says what had arrived from each",
        asked(f"{REMIND} -o remind.csv", left=cancelled),
        until(NOTHING_YET, asked(LIST, left=cancelled)),
    ),
    Example(
        "say it in fewer words",
        amended_by("x" * 301),
        amended_by("no room"),
    ),
    Example(
        "make another one, by `datacollect event new --like`",
        amended_by("no room", "no time"),
        longer("--like e.toml"),
    ),
    Example(
        "is decided after {}; forget afterwards",
        asked(FORGET),
        asked(FORGET, left=over),
    ),
    Example(
        "`datacollect event run` is running there; stop it, and run this again",
        asked(forgotten_while_collecting, left=over),
        asked(FORGET, left=over),
    ),
    Example(
        "forgetting {} was interrupted; first run `datacollect event forget` again for that person",
        asked(FORGET, begun_for("Bob"), left=over),
        asked(FORGET, begun_for("Ann"), left=over),
    ),
    Example(
        "is damaged; remove it, and run this again for the person for whom it was begun",
        asked(FORGET, left_open("{"), left=over),
        asked(FORGET, left=over),
    ),
    Example(
        "leave --when out if the file arrived just now",
        asked(f"{ACCEPT} --when 9000-01-31T18:00"),
        asked(ACCEPT),
    ),
    Example(
        "give -o for a table of whom to remind, or --smtp to mail them",
        asked(REMIND),
        asked(f"{REMIND} -o remind.csv"),
    ),
    Example(
        "`datacollect event list` says what has arrived from each",
        asked(f"{REMIND} -o remind.csv", left=over),
        until(NOTHING_YET, asked(LIST, left=over)),
    ),
    Example(
        "until it says that a server holds the file; or run `datacollect upload` again",
        reminder_of(PROMISED),
        reminder_of(HELD),
    ),
    Example(
        "password_file: {} cannot be read: {}; write only the password into it",
        smtp('user = "a"\npassword_file = "word.txt"\n'),
        smtp('user = "a"\npassword_file = "word.txt"\n', word_txt="secret\n"),
    ),
    Example(
        "user and password_file belong together; give both, or neither",
        smtp('user = "a"\n'),
        smtp(""),
    ),
    Example(
        "does not accept mail: {}; check host, port, user and password_file, and run this again",
        mailed(at_its_port=False),
        mailed(at_its_port=True),
    ),
]
