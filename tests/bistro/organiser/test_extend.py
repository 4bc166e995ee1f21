"""Amendments before services that are not there, refuse, or say nonsense."""

from __future__ import annotations

import json

import pytest
from instances.events import event_bytes, event_of, key_of, proof_of

from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, amendments_data
from datacollect.bistro.http import published
from datacollect.bistro.organiser import extend as extending
from datacollect.commands.main import run
from datacollect.errors import ProblemError, TransferError
from datacollect.net.http_asking import Answer
from datacollect.net.keys import write_private_key

EVENT = event_of()
URLS = [each.url for each in EVENT.services]
LATER, LATER_STILL = "2027-04-16T23:59:59-04:00", "2027-04-17T23:59:59-04:00"


class Services:
    """Both services, in memory; each takes amendments while it is well."""

    def __init__(self) -> None:
        self.notes: dict[str, list[bytes]] = {url: [] for url in URLS}
        self.ill: dict[str, Answer | None] = {}

    def asker(self, url: str, _tls: object) -> _One:
        return _One(self, url)


class _One:
    def __init__(self, services: Services, url: str) -> None:
        self._services, self._url = services, url

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _ill(self) -> Answer | None:
        if self._url in self._services.ill:
            answer = self._services.ill[self._url]
            if answer is None:
                raise TransferError(f"{self._url}: cannot be reached")
            return answer
        return None

    def post(self, path: str, body: bytes, content_type: str) -> Answer:
        assert path == "/amend"
        if (answer := self._ill()) is not None:
            return answer
        notes = self._services.notes[self._url]
        if body not in notes:
            if f"number = {len(notes) + 1}\n".encode() not in body:
                return Answer(400, b"hand in the earlier ones first")
            notes.append(body)
        return Answer(200, b"{}")

    def get(self, path: str, most_bytes: int = 0) -> Answer:
        assert path == "/amendments"
        if (answer := self._ill()) is not None:
            return answer
        i = URLS.index(self._url)
        log = EVENT.services[i].log.name
        rows = [
            PublishedAmendment(note, (proof_of(note, log, EVENT.deadline_s, 3, f"s{i}"),))
            for note in self._services.notes[self._url]
        ]
        return Answer(200, amendments_data(EVENT.id, rows))


@pytest.fixture
def services(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.toml").write_bytes(event_bytes())
    write_private_key("organiser.key", key_of("organiser"))
    found = Services()
    monkeypatch.setattr(published, "Asker", found.asker)
    monkeypatch.setattr(extending, "Asker", found.asker)
    monkeypatch.setattr(extending, "PATIENCE_S", 0.0)
    return found


def extended(capsys, *changes: str) -> tuple[int, dict]:
    command = ["event", "extend", "event.toml", "--key", "organiser.key", "--json", *changes]
    code = run(command)
    return code, json.loads(capsys.readouterr().out)


def test_service_that_is_down_is_named_and_gets_the_same_note_later(services, capsys, tmp_path):
    services.ill[URLS[1]] = None
    code, told = extended(capsys, "--deadline", LATER)
    assert (code, told["number"], told["published"]) == (1, 1, [URLS[0]])
    assert "cannot be reached" in told["troubles"][URLS[1]]
    services.ill.clear()
    code, told = extended(capsys, "--deadline", LATER)
    assert (code, told["number"], len(told["published"])) == (0, 1, 2)
    assert services.notes[URLS[0]] == services.notes[URLS[1]]
    assert len(services.notes[URLS[0]]) == 1
    assert (tmp_path / "event.amendment-1.txt").read_bytes() == services.notes[URLS[0]][0]


@pytest.mark.slow
def test_service_that_was_down_for_one_amendment_is_sent_it_before_the_next(services, capsys):
    services.ill[URLS[1]] = None
    assert extended(capsys, "--deadline", LATER)[0] == 1
    services.ill.clear()
    code, told = extended(capsys, "--deadline", LATER_STILL)
    assert (code, told["number"], len(told["published"])) == (0, 2, 2)
    assert services.notes[URLS[0]] == services.notes[URLS[1]]
    assert len(services.notes[URLS[0]]) == 2


@pytest.mark.slow
def test_first_refusal_says_why_the_others_are_refused(services, capsys):
    services.ill[URLS[1]] = None
    extended(capsys, "--deadline", LATER)
    services.ill[URLS[1]] = Answer(507, b"the disk is full")
    code, told = extended(capsys, "--deadline", LATER_STILL)
    assert (code, told["troubles"]) == (1, {URLS[1]: "(507) the disk is full"})


@pytest.mark.slow
def test_note_that_nobody_took_keeps_its_number(services, capsys, tmp_path):
    """Else a service that comes back would hold two amendments of one number."""
    services.ill = dict.fromkeys(URLS)
    assert extended(capsys, "--deadline", LATER)[0] == 3
    services.ill = {}
    code, told = extended(capsys, "--deadline", LATER_STILL)
    assert (code, told["number"]) == (0, 2)
    # The first one is posted by saying it again.
    code, told = extended(capsys, "--deadline", LATER)
    assert (code, told["number"]) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, b""),
        Answer(200, b"[]"),
        Answer(200, b"\xff"),
        Answer(200, b"{"),
        Answer(200, amendments_data(bytes(32), [])),
        Answer(200, amendments_data(EVENT.id, [PublishedAmendment(b"no note")])),
    ],
)
def test_service_that_says_nonsense_is_named_and_the_other_counts(services, capsys, answer):
    services.ill[URLS[0]] = answer
    code, told = extended(capsys, "--deadline", LATER)
    assert (code, told["published"]) == (1, [URLS[1]])
    assert URLS[0] in told["troubles"]


@pytest.mark.slow
def test_changes_that_are_none_are_refused(services, capsys, tmp_path):
    (tmp_path / "b.toml").write_text("[[services]]\nurl = 'https://x.example'\n")
    for changes, said in (
        ([], "say what changes"),
        (["--deadline", "2027-04-15T23:59:58-04:00"], "can only move to later"),
        (["--deadline", "2027-05-01T00:00:00-04:00"], "collect_until must lie after deadline"),
        (["--deadline", "2027-04-16T00:00:00"], "offset"),
        (["--revoke", "nobody"], "token_sha256"),
        (["--bistros", "b.toml"], "must hold [[bistros]] and nothing else"),
    ):
        assert run(["event", "extend", "event.toml", "--key", "organiser.key", *changes]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    write_private_key("other.key", key_of("somebody"))
    with pytest.raises(ProblemError, match="organiser's"):
        extending.extend("event.toml", "other.key", deadline=LATER)
    assert not list(tmp_path.glob("*.txt"))


def test_event_of_an_older_kind_is_not_extended(services, capsys, tmp_path):
    """Nothing serves it any more: no log would ever publish what is signed."""
    older = event_bytes().replace(b"datacollect-event/2", b"datacollect-event/1")
    (tmp_path / "event.toml").write_bytes(older)
    command = ["event", "extend", "event.toml", "--key", "organiser.key", "--deadline", LATER]
    assert run(command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "event.toml: format must be datacollect-event/2, got datacollect-event/1" in said
    assert "`datacollect event new` makes one of today's" in said
    assert not any(services.notes.values())
    assert not list(tmp_path.glob("*.txt"))


def test_an_event_is_cancelled_once_and_for_good(services, capsys):
    command = ["event", "cancel", "event.toml", "--key", "organiser.key", "--why"]
    services.ill[URLS[1]] = None
    assert run([*command, "the exam is moved"]) == 1
    services.ill.clear()
    # Interrupted, the same command goes on.
    assert run([*command, "the exam is moved"]) == 0
    assert [len(services.notes[url]) for url in URLS] == [1, 1]
    capsys.readouterr()
    assert run([*command, "for another reason"]) == 2
    assert "can no longer be changed" in " ".join(capsys.readouterr().err.split())
    assert (
        run(["event", "extend", "event.toml", "--key", "organiser.key", "--deadline", LATER]) == 2
    )
    assert [len(services.notes[url]) for url in URLS] == [1, 1]
