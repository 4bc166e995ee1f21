"""Event files: what they say, which bytes are which event, and all that is refused."""

from __future__ import annotations

import hashlib
import random
import textwrap
import tomllib
from contextlib import suppress

import pytest
from instances.authorities import certificate_pem
from instances.events import (
    DEADLINE_S,
    RECIPIENTS,
    counting_bytes,
    draft,
    event_bytes,
    event_of,
    key_of,
    witness_names,
)

from datacollect.bistro.formats.event.amendments import read_amendment, sign_amendment
from datacollect.bistro.formats.event.draft import TIMES, certificate_files, complete
from datacollect.bistro.formats.event.file import id_advice, read_event
from datacollect.bistro.formats.event.strength import cautions, withstands
from datacollect.bistro.formats.log.checkpoints import log_key, witness_key
from datacollect.errors import ProblemError

ORGANISER = key_of("organiser")

PEM = certificate_pem()
# What a PEM file looks like, with nothing in it.
EMPTY_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
# The same certificate, in lines of another length.
_HEAD, *_BODY, _END = PEM.split("\n")[:-1]
LONG_PEM = "\n".join([_HEAD, *textwrap.wrap("".join(_BODY), 76), _END, ""])


def test_a_draft_becomes_an_event_that_says_what_it_said():
    event = event_of()
    assert event.id == hashlib.sha256(event_bytes()).digest()
    assert (event.name, event.deadline_s, event.lag_s) == ("Income tax 2026", DEADLINE_S, 10)
    assert event.latest_s == DEADLINE_S + 10
    assert event.clock_text(DEADLINE_S) == "Thu 2027-04-15 23:59:59 -04:00"
    assert (event.admission, event.counts, event.quorum) == ("tickets", "last", 3)
    assert event.commitments_per_ticket == 10
    assert event.recipients == RECIPIENTS
    # The origins of the logs: the host, and eight bytes that the source of bytes gave.
    assert [each.log.name for each in event.services] == [
        "s0.example/0000000000000001",
        "s1.example/0000000000000002",
    ]
    assert event.log_of("s1.example/0000000000000002").key == key_of("s1").public
    assert event.log_of("s1.example/0000000000000003") is None


def test_a_draft_becomes_the_same_bytes_always():
    assert event_bytes() == event_bytes()
    # As TOML that anybody reads.
    tree = tomllib.loads(event_bytes().decode())
    assert tree["format"] == "datacollect-event/2"
    assert tree["limits"] == {"commitments_per_ticket": 10, "files": 10_000}
    assert tree["deadline"].isoformat() == "2027-04-15T23:59:59-04:00"


def test_each_event_has_logs_of_its_own():
    random_bytes = counting_bytes()
    one, two = (complete(draft(), key_of("organiser").public, random_bytes, {}) for _ in range(2))
    assert read_event(one).services[0].log.name != read_event(two).services[0].log.name


def test_certificates_of_files_come_into_the_event():
    """Whoever has the event's file alone can judge a token."""
    authorities = [
        {"url": "http://a.example/tsa", "certificate": "a.pem"},
        {"url": "http://b.example", "certificate": PEM},
    ]
    tree = draft(authorities=authorities)
    assert certificate_files(tree) == ["a.pem"]
    other = certificate_pem()
    data = complete(tree, key_of("organiser").public, counting_bytes(), {"a.pem": other})
    assert [each.certificate for each in read_event(data).authorities] == [other, PEM]


def test_an_event_says_where_the_log_of_verdicts_is_read():
    """A draft gives its public key, as for services; the origin is the host's, and fresh."""
    key = key_of("destination").public
    event = event_of(verdicts={"key": key, "url": "https://Dest.example/v/"})
    assert event.verdicts_url == "https://Dest.example/v"
    assert event.verdicts == log_key("Dest.example/0000000000000003", key)
    # Older events have a log that nobody can ask.
    log = log_key("dest.example/0123456789abcdef", key).text
    assert event_of(verdicts={"log": log}).verdicts_url is None
    assert event_of().verdicts_url is None


def test_another_version_of_the_file_is_told_apart_from_other_line_ends():
    data = event_bytes()
    dos = data.replace(b"\n", b"\r\n")
    assert read_event(dos).id != read_event(data).id
    for one, two in ((data, dos), (dos, data)):
        advice = id_advice(one, hashlib.sha256(two).digest())
        assert "line ends were changed" in advice
    assert "another event" in id_advice(data, bytes(32))


@pytest.mark.parametrize(
    ("quorum", "n", "is_stopped"),
    [(2, 2, True), (2, 3, True), (3, 3, True), (3, 4, False), (3, 5, True), (4, 5, False)],
)
def test_where_one_witness_can_stop_a_service_that_is_said(quorum, n, is_stopped):
    words = " ".join(cautions(event_of(n_witnesses=n, quorum=quorum)))
    assert ("one witness that lies stop a service" in words) == is_stopped


def test_what_an_event_withstands_is_said():
    """3 of 4: two backdating liars are too few, a fork takes the service and two."""
    assert withstands(event_of()) == [
        "To backdate an entry takes 3 of the 4 witnesses.",
        "To show two people two logs takes the service and 2 witnesses.",
        "Witnesses that may fail or post-date, together: 1.",
    ]
    words = " ".join(withstands(event_of(n_witnesses=3, quorum=2)))
    assert "2 of the 3" in words
    assert "the service and 1 witness." in words


def test_event_of_one_keeper_says_what_it_does_not_prove():
    event = event_of(alone=True, n_witnesses=1, quorum=1, n_services=1)
    words = " ".join(withstands(event))
    assert event.alone
    assert "proves nothing against that organiser" in words
    assert "could change times" in words
    assert "stamp" not in words


def test_what_works_but_not_for_long_is_said():
    assert cautions(event_of()) == [
        "authorities names fewer than two: where no service answers, nothing can be proved."
    ]
    event = event_of(recipients=[RECIPIENTS[0]], n_services=1, quorum=4)
    assert [text.split()[0] for text in cautions(event)] == [
        "recipients",
        "quorum",
        "quorum",
        "services",
        "authorities",
    ]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"deadline": None}, "key deadline is missing"),
        ({"deadlin": "x"}, "unknown key; did you mean 'deadline'"),
        ({"deadline": "2027-04-15T23:59:59-05:00"}, "deadline must have the offset of timezone"),
        ({"deadline": "2027-04-15T23:59:59.5-04:00"}, "deadline must be in whole seconds"),
        ({"keep_until": "2999-05-15T23:59:59-04:00"}, "keep_until must lie before the year 2514"),
        ({"deadline": "2027-05-15T23:59:59-04:00"}, "collect_until must lie after deadline"),
        ({"opens": "2027-04-16T00:00:00-04:00"}, "deadline must lie after opens"),
        ({"timezone": "New York"}, "timezone must be an IANA name"),
        ({"lag_s": 601}, "lag_s must be a whole number of seconds >= 0 and below 601"),
        ({"quorum": 5}, "quorum must be at most the number of witnesses, 4, got 5"),
        ({"quorum": 2}, "at least 3 of 4 witnesses, got 2 of 4: a service alone could show two"),
        ({"quorum": 1, "n_witnesses": 1}, "got 1 of 1: one witness could backdate alone"),
        ({"n_services": 0}, "services must name at least one"),
        ({"recipients": []}, "recipients must be a list of 1 to 16 recipients"),
        ({"recipients": [RECIPIENTS[0]] * 2}, r"recipients\[1\] must be another key than recip"),
        ({"recipients": [RECIPIENTS[0][:-1] + "q"]}, r"recipients\[0\] must be a recipient of age"),
        ({"recipients": ["AGE-SECRET-KEY-1XXXX"]}, "got an identity, which is a secret"),
        ({"admission": "all"}, 'admission must be "tickets" or "open"'),
        ({"counts": "best"}, 'counts must be "last" or "first" or "all"'),
        ({"organiser": key_of("other").public}, "organiser must be the key given beside"),
        ({"limits": {"commitments_per_ticket": 0}}, "commitments_per_ticket must be a whole"),
        ({"format": "datacollect-problem/1"}, 'format must be "datacollect-event/2"'),
        ({"authorities": [{"url": "ftp://a", "certificate": PEM}]}, "must be a URL of https"),
        ({"authorities": [{"url": "http://a", "certificate": "no.pem"}]}, "must be certificates"),
        (
            {"authorities": [{"url": "http://a", "certificate": EMPTY_PEM}]},
            r"authorities\[0\].certificate must be certificates, but one cannot be read",
        ),
        (
            {
                "bistros": [
                    {"name": "b", "url": "https://b", "key": key_of("b").public, "ca": EMPTY_PEM}
                ]
            },
            r"bistros\[0\].ca must be certificates, but one cannot be read",
        ),
        (
            {
                "authorities": [
                    {"url": "http://a", "certificate": PEM},
                    {"url": "http://b", "certificate": LONG_PEM},
                ]
            },
            r"authorities\[1\].certificate must be another key than authorities\[0\]",
        ),
        (
            {"authorities": [{"url": "http://a", "certificate": PEM}] * 2},
            r"authorities\[1\].certificate must be another key",
        ),
        (
            {
                "bistros": [
                    {
                        "name": "b",
                        "url": "https://b",
                        "key": key_of("b").public,
                        "fingerprint": f"sha256:{'0' * 64}",
                        "ca": PEM,
                    }
                ]
            },
            r"bistros\[0\] must have a fingerprint or a ca, not both",
        ),
        ({"alone": True}, "alone must be left out where there are several.*quorum of 3 of 4"),
        (
            {"alone": True, "n_witnesses": 1, "quorum": 2},
            "alone must be left out where there are several.*quorum of 2 of 1",
        ),
        (
            {"verdicts": {"log": log_key("v.example", key_of("s0").public).text}},
            "verdicts.log must be another key than services",
        ),
        ({"verdicts": {"url": "https://v.example"}}, r"verdicts.*key log is missing"),
        ({"verdicts": {"key": key_of("v").public}}, "verdicts.url must not be empty"),
        (
            {"verdicts": {"key": key_of("v").public, "url": "https://S1.example/"}},
            r"verdicts.url must be another than that of services\[1\]",
        ),
        (
            {"services": [{"url": "https://s0.example", "key": key_of("organiser").public}]},
            r"services\[0\].log must be another key than organiser: one key serves one purpose",
        ),
        (
            {"services": [{"url": "https://s0", "log": log_key("s0", key_of("s").public).text}]},
            "an origin of a host and 16 random hexadecimal digits, got 's0'",
        ),
        (
            {
                "services": [
                    {"url": "https://s.example/", "key": key_of("s0").public},
                    {"url": "https://S.example", "key": key_of("s1").public},
                ]
            },
            r"services\[1\].url must be another than that of services\[0\]",
        ),
        (
            {
                "services": [{"url": "https://s0.example", "key": "ed25519:AQ" + "A" * 41 + "="}],
            },
            r"services\[0\].*must be a safe public key",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes, what):
    with pytest.raises(ProblemError, match=what):
        event_of(**changes)


def test_drafts_may_say_local_times_where_the_time_zone_determines_them():
    """The file of the event says the offset; of the hour that comes twice nobody knows which."""
    local = {"deadline": "2027-04-15T23:59:59", "keep_until": "2027-12-31T00:00:00"}
    event = event_of(**local)
    assert event == event_of(
        deadline="2027-04-15T23:59:59-04:00", keep_until="2027-12-31T00:00:00-05:00"
    )
    with pytest.raises(ProblemError, match="skip 2027-03-14 02:30; write a later time"):
        event_of(opens="2027-03-14T02:30:00")
    # A wrong offset: the remedy, to leave it out, is taken.
    with pytest.raises(ProblemError, match=r"must have the offset of.*leave the offset out"):
        event_of(deadline="2027-04-15T23:59:59-05:00")
    assert event_of(**local).deadline_s == 1807847999


def test_a_day_without_a_time_is_that_days_end_or_beginning():
    found = event_of(opens="2027-01-02", deadline="2027-04-15", keep_until="2027-12-31")
    assert found == event_of(
        opens="2027-01-02T00:00:00",
        deadline="2027-04-15T23:59:59",
        keep_until="2027-12-31T23:59:59",
    )


def test_all_that_is_wrong_with_times_is_said_at_once():
    with pytest.raises(ProblemError) as caught:
        event_of(
            deadline="2027-04-15T23:59:59-05:00",
            collect_until="2027-13-01T00:00:00",
            keep_until="2037-08-31T23:59:59-05:00",
        )
    assert [key in str(caught.value) for key in TIMES] == [False, True, True, True]


def test_the_file_of_an_event_says_offsets():
    data = complete(draft(), key_of("organiser").public, counting_bytes(), {})
    without = data.replace(b"23:59:59-04:00", b"23:59:59", 1)
    assert without != data
    with pytest.raises(ProblemError, match=r"an offset from UTC, got '(.*)'; write it like \1-04"):
        read_event(without, "e")


def test_a_deadline_in_the_hour_that_comes_twice_is_refused():
    """In New York clocks show 01:30 of 7 November 2027 at -04:00, and an hour later at -05:00."""
    changes = {"collect_until": "2027-12-01T00:00:00-05:00"}
    for offset in ("-04:00", "-05:00"):
        with pytest.raises(ProblemError, match="the hour that clocks in America/New_York show tw"):
            event_of(deadline=f"2027-11-07T01:30:00{offset}", **changes)
    with pytest.raises(ProblemError, match="show 2027-11-07 01:30 twice"):
        event_of(deadline="2027-11-07T01:30:00", **changes)
    assert event_of(deadline="2027-11-07T02:30:00-05:00", **changes).name


def test_one_witness_under_two_names_is_refused():
    names = [*witness_names(3), "w0.elsewhere"]
    keys = [key_of(name) for name in (*names[:3], names[0])]
    witnesses = [
        {"url": f"https://{name}", "vkey": witness_key(name, key.public).text}
        for name, key in zip(names, keys, strict=True)
    ]
    with pytest.raises(ProblemError, match="one witness under two names would count twice"):
        event_of(witnesses=witnesses)


def test_what_is_no_text_or_too_long_is_refused():
    with pytest.raises(ProblemError, match="must be UTF-8, but byte 1 is not"):
        read_event(b"a\xff")
    with pytest.raises(ProblemError, match="must have at most"):
        read_event(b"a" * (2**24 + 1))
    with pytest.raises(ProblemError, match=r"tax\.toml, at the end: not valid TOML"):
        read_event(b"a", "tax.toml")


def fuzzed(times: int) -> None:
    """Noise in a file, or in a note of an amendment, ends as an event or as bad input."""
    random_of = random.Random(4)
    event = event_of()
    note = sign_amendment(
        event, {"deadline": "2027-04-16T23:59:59-04:00", "revoked": ["ab" * 32]}, 1, ORGANISER
    )
    kinds = ((read_event, event_bytes()), (lambda data: read_amendment(data, event), note))
    for _ in range(times):
        read, whole = random_of.choice(kinds)
        data = bytearray(whole)
        for _ in range(random_of.randint(1, 4)):
            at = random_of.randrange(len(data))
            data[at : at + random_of.randrange(4)] = random_of.randbytes(random_of.randrange(4))
        with suppress(ProblemError):
            read(bytes(data))


def test_noise_is_an_event_or_bad_input():
    fuzzed(300)


@pytest.mark.slow
def test_much_noise_is_an_event_or_bad_input():
    fuzzed(100_000)


def test_an_event_says_how_many_files_a_draft_may_have_and_older_ones_take_one():
    assert event_of().most_files == 10_000
    assert event_of(limits={"files": 3}).most_files == 3
    assert event_of(content="datacollect-content/1").most_files == 1
    assert read_event(event_bytes().replace(b", files = 10000", b"")).most_files == 1
    with pytest.raises(ProblemError, match=r"limits\.files must be 1 where content is"):
        event_of(content="datacollect-content/1", limits={"files": 2})
    for wrong in (0, 10_001, "many"):
        with pytest.raises(ProblemError, match=r"limits\.files"):
            event_of(limits={"files": wrong})
