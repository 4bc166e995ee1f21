"""Reminders: to whom, of what, as long as it helps; mails that nobody gets twice."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
from instances.collected import EVENT, Collected
from instances.mail_servers import mail_server

from datacollect.bistro.destination.people import HELD, PROMISED, Draft, HandedIn
from datacollect.bistro.destination.people_list import PeopleList
from datacollect.bistro.destination.reminding import (
    NO_FILE,
    NOT_SENT,
    SENT_FILE,
    SmtpConfig,
    mail,
    reminders_of,
    write_reminders,
)
from datacollect.errors import ProblemError

PEOPLE = (
    HandedIn("Ann", email="ann@x.example"),
    HandedIn("Bob", email="bob@x.example", drafts=(Draft(b"b" * 32, PROMISED),)),
    HandedIn("Eve", email="eve@x.example", drafts=(Draft(b"e" * 32, HELD),)),
    HandedIn("Max"),
)


@pytest.fixture
def people(tmp_path):
    made = Collected(tmp_path / "out")
    return PeopleList(EVENT, made.standing, PEOPLE, tmp_path / "out")


def test_before_the_deadline_whoever_has_nothing_on_its_way(people):
    reminders = reminders_of(people, EVENT.deadline_s - 60)
    assert [(each.person, each.what) for each in reminders] == [
        ("Ann", NO_FILE),
        ("Bob", NOT_SENT),
        ("Max", NO_FILE),
    ]


def test_after_the_deadline_those_alone_who_can_still_send(people):
    (bob,) = reminders_of(people, EVENT.latest_s + 1)
    assert (bob.person, bob.what) == ("Bob", NOT_SENT)
    assert bob.until == EVENT.clock_text(EVENT.collect_until_s)
    assert "the same browser" in bob.text(None)


def test_when_nothing_helps_any_more_it_is_said(people):
    with pytest.raises(ProblemError, match="nobody can hand in or send after"):
        reminders_of(people, EVENT.collect_until_s + 1)


def test_a_table_has_no_formula_of_whoever_chose_a_name(people, tmp_path):
    evil = HandedIn('=HYPERLINK("https://x.example")', email="@SUM(1)")
    evil = reminders_of(replace(people, people=(evil,)), EVENT.deadline_s - 60)
    write_reminders(evil, tmp_path / "remind.csv")
    with (tmp_path / "remind.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["person"], row["email"]) == ('\'=HYPERLINK("https://x.example")', "'@SUM(1)")


def test_a_table_is_for_its_owners_eyes(people, tmp_path):
    path = tmp_path / "remind.csv"
    write_reminders(reminders_of(people, EVENT.deadline_s - 60), path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().splitlines()[0] == "person,email,what,until"
    assert len(path.read_text().splitlines()) == 4


@pytest.fixture
def server():
    with mail_server() as server:
        yield server


def config_of(server):
    host, port = server.server_address
    return SmtpConfig(
        host, port, "School <school@x.example>", None, None, False, "https://page.example"
    )


def test_each_gets_one_mail_and_none_a_second_time(people, server):
    reminders = reminders_of(people, EVENT.deadline_s - 60)
    done = mail(reminders, config_of(server), people.folder)
    assert (done.n_sent, done.n_before) == (2, 0)
    assert done.troubles == {"Max": "the roster has no e-mail address"}
    assert ["To: ann@x.example" in server.said[0], "To: bob@x.example" in server.said[1]] == [
        True
    ] * 2
    assert "https://page.example" in server.said[0]
    done = mail(reminders, config_of(server), people.folder)
    assert (done.n_sent, done.n_before) == (0, 2)
    assert len(server.said) == 2


@pytest.mark.parametrize("email", ["a@x.example\nBcc: all@x.example", "ä@x.example"])
def test_an_address_that_no_mail_can_have_does_not_keep_the_others_from_theirs(
    people, server, email
):
    everybody = (HandedIn("Adam", email=email), *PEOPLE)
    reminders = reminders_of(replace(people, people=everybody), EVENT.deadline_s - 60)
    done = mail(reminders, config_of(server), people.folder)
    assert (done.n_sent, [*done.troubles]) == (2, ["Adam", "Max"])
    assert not any("all@x.example" in each for each in server.said)


def test_who_is_refused_does_not_keep_the_others_from_theirs(people, server):
    server.refuses_bob = True
    done = mail(reminders_of(people, EVENT.deadline_s - 60), config_of(server), people.folder)
    assert done.n_sent == 1
    assert "no such mailbox" in done.troubles["Bob"]


def test_a_server_that_ends_midway_is_gone_on_with(people, server):
    """The first has his mail and is noted; whoever comes next is not skipped."""
    server.most = 1
    reminders = reminders_of(people, EVENT.deadline_s - 60)
    with pytest.raises(ProblemError, match="nobody gets the same message twice"):
        mail(reminders, config_of(server), people.folder)
    noted = (people.folder / SENT_FILE).read_text().splitlines()
    assert [json.loads(line)["person"] for line in noted] == ["Ann"]
    server.most = 100
    assert mail(reminders, config_of(server), people.folder).n_sent == 1
    assert len(server.said) == 2


def test_a_line_that_was_cut_counts_for_nobody(people, server):
    (people.folder / SENT_FILE).write_text('{"email": "ann@x.exa')
    reminders = reminders_of(people, EVENT.deadline_s - 60)
    assert mail(reminders, config_of(server), people.folder).n_sent == 2
    assert mail(reminders, config_of(server), people.folder).n_before == 2


def test_a_mail_server_file_says_what_is_wrong(tmp_path):
    path = tmp_path / "smtp.toml"
    path.write_text('host = "mail"\nfrom = "a@x"\nuser = "a"\n')
    with pytest.raises(ProblemError, match="user and password_file belong together"):
        SmtpConfig.from_file(path)
    (tmp_path / "word").write_text("secret\n")
    path.write_text('host = "mail"\nfrom = "a@x"\nuser = "a"\npassword_file = "word"\n')
    found = SmtpConfig.from_file(path)
    assert found.domain == "x"
    assert (found.password, found.port, found.starttls) == ("secret", 587, True)
    assert "secret" not in repr(found)
