"""`upload` end to end to real bistros and a real log of verdicts, of which some are away."""

from __future__ import annotations

import io
import json
import time
from contextlib import ExitStack
from hashlib import sha256

import pyrage
import pytest
from instances.bistros import NAMES, rows_with_certificates, run_bistro
from instances.events import key_of, ticket_of
from instances.lying_bistro import lying_bistro
from instances.timestamping import World, until

from datacollect.bistro.formats.assignment.loads import BistroLoad, Loads
from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    NEVER_CAME,
    OTHER_CONTENT,
    OTHER_TICKET,
    REFUSED,
    SUPERSEDED,
    Verdict,
)
from datacollect.bistro.formats.event.marks import own_mark_key
from datacollect.bistro.formats.event.tickets import Ticket
from datacollect.bistro.formats.receipt.receipt import read_receipt
from datacollect.bistro.formats.sealing.keep import ciphertext_of, read_keep
from datacollect.bistro.formats.sealing.sealed import open_sealed
from datacollect.bistro.person import delivering, pushing
from datacollect.bistro.person.pushing import MOST_FAILURES
from datacollect.bistro.person.sending import Sender
from datacollect.bistro.person.verify_receipt import verify_receipt
from datacollect.commands.main import run
from datacollect.errors import TransferError
from datacollect.net.dialling import dial

DESTINATION = key_of("destination")
IDENTITY = pyrage.x25519.Identity.generate()
ARGUMENTS = ["upload", "a.bin", "--event", "event.toml", "--json"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One service, three witnesses, two bistros that do not run yet."""
    folder = tmp_path_factory.mktemp("world")
    verdicts = {"key": DESTINATION.public}
    recipients = [str(IDENTITY.to_public())]
    with World(
        folder,
        bistros=rows_with_certificates(folder),
        verdicts=verdicts,
        recipients=recipients,
        limits={"files": 1},
    ) as made:
        made.start_witnesses(0, 1, 2)
        made.start(0)
        yield made


@pytest.fixture
def person(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(world.authority))
    number = int.from_bytes(tmp_path.name.encode(), "big") % 2**127
    (tmp_path / "my.ticket").write_text(ticket_of(world.event, number).text)
    (tmp_path / "event.toml").write_bytes((world.folder / "event.toml").read_bytes())
    return tmp_path


def uploaded(capsys, *more: str) -> tuple[int, dict]:
    """Run the command; return its exit code and what it says of the one file."""
    code = run([*ARGUMENTS, *more])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    (told,) = json.loads(out)["files"]
    return code, told


def saved(person):
    return read_receipt((person / "a.bin.receipt.json").read_bytes())


def marked_entry(world, person, number) -> bytes:
    """Return an entry that might be another one of the person's ticket."""
    ticket = Ticket.from_file(person / "my.ticket")
    beginning = sha256(b"%s %d" % (person.name.encode(), number)).digest()[:24]
    return beginning + own_mark_key(world.event, ticket.key).mark(beginning)


def judge(log, world, told: dict, word: str, why: str = "") -> None:
    """Have a verdict logged, which witnesses sign."""
    said = Verdict(world.event.id, bytes.fromhex(told["entry"]), word, why).data
    until(lambda: log.record([said]), "the verdict")


@pytest.fixture
def dialled(monkeypatch):
    """Return the ports to which connections were made, each time."""
    ports = []

    def counting(addresses, *args, **how):
        ports.append(addresses[0][1])
        return dial(addresses, *args, **how)

    monkeypatch.setattr("datacollect.net.http_asking.dial", counting)
    return ports


def port_of(world, name: str) -> int:
    return next(int(b.url.rpartition(":")[2]) for b in world.event.bistros if b.name == name)


@pytest.mark.slow
def test_file_waits_for_a_bistro_and_is_then_held_by_the_one_that_is_there(
    world, person, capsys, dialled
):
    content = bytes(range(256)) * 12_000  # more than goes with one request
    (person / "a.bin").write_bytes(content)
    code, told = uploaded(capsys, "--ticket", "my.ticket", "--commit-only")
    assert (code, told["outcome"], told["held_by"]) == (0, "in time", None)
    with ExitStack() as held:
        run_bistro(world, "south", held)
        code, told = uploaded(capsys)
        assert (code, told["outcome"], told["held_by"]) == (0, "in time", "south")
        # Two requests went to it, and one connection.
        assert dialled.count(port_of(world, "south")) == 1
        assert "south says that it holds it" in told["proved"]
        receipt = saved(person)
        word = read_bistro_receipt(receipt.bistro_receipts[0], world.event)
        assert (word.size, word.sha256) == (
            receipt.commitment.size,
            receipt.commitment.ciphertext_sha256,
        )
    # It is not sent again, though nobody is there any more.
    assert run(ARGUMENTS[:-1]) == 0
    assert "held by south since" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [10, 3_000_000])
def test_bistro_that_has_nothing_for_ever_is_left_for_one_that_takes_the_file(
    world, person, capsys, monkeypatch, n_bytes
):
    monkeypatch.setattr(pushing, "AGAIN_S", 0.01)
    (person / "a.bin").write_bytes(bytes(n_bytes))
    files = [world.folder / f"north.{ending}" for ending in ("pem", "key")]
    with lying_bistro(port_of(world, "north"), *files) as lying:
        code, told = uploaded(capsys, "--ticket", "my.ticket")
        assert (code, told["held_by"]) == (1, None)
        assert "north: accepts less than it is sent" in told["troubles"]
        assert lying.asked == ["POST", *["PATCH"] * MOST_FAILURES]
        with ExitStack() as held:
            run_bistro(world, "south", held)
            code, told = uploaded(capsys)
            assert (code, told["held_by"]) == (0, "south")


@pytest.mark.slow
@pytest.mark.parametrize("other", ["", "ab" * 32])
def test_the_receipt_of_a_collected_file_proves_it_and_nobody_need_be_asked(
    world, person, capsys, other
):
    (person / "a.bin").write_bytes(b"income")
    with world.verdict_log(DESTINATION) as log:
        with ExitStack() as held:
            run_bistro(world, "north", held)
            code, told = uploaded(capsys, "--ticket", "my.ticket")
            assert (code, told["held_by"], told["verdict"], told["collected_s"]) == (
                *(0, "north"),
                *(None, None),
            )
        # Another draft took its place, and did not count after all.
        judge(log, world, told, COLLECTED, other)
        code, told = uploaded(capsys)
        verdict = f"collected: {other}" if other else "collected"
        assert (code, told["verdict"], told["held_by"]) == (0, verdict, "north")
        assert abs(told["collected_s"] - time.time()) < 600
        assert "collected: proved by the destination's log" in told["proved"]
    # Offline.
    told = uploaded(capsys, "--elsewhere")[1]
    assert "nothing is sent elsewhere: it was collected" in told["troubles"]
    verdict = verify_receipt("a.bin.receipt.json", "event.toml", file="a.bin")
    assert verdict.collected_s == told["collected_s"]
    code, again = uploaded(capsys)
    assert (code, again["collected"], again["verdict"]) == (0, told["collected"], None)
    assert any("cannot be reached" in trouble for trouble in again["troubles"])


def opened(path):
    """Return what is inside a sealed file that is kept, and the code of its content."""
    out = io.BytesIO()
    with ciphertext_of(path, read_keep(path)) as blocks:
        found = open_sealed(io.BytesIO(b"".join(blocks)), out, [str(IDENTITY)])
    return out.getvalue(), found.content_p


def anew_words(world, person):
    words = [read_bistro_receipt(t, world.event) for t in saved(person).bistro_receipts]
    return [word for word in words if word.sealed_anew]


@pytest.mark.slow
def test_what_does_not_open_is_sealed_anew_and_collected(world, person, capsys, monkeypatch):
    (person / "a.bin").write_bytes(content := bytes(range(256)) * 8000)
    with ExitStack() as held, world.verdict_log(DESTINATION) as log:
        run_bistro(world, "north", held)
        _, told = uploaded(capsys, "--ticket", "my.ticket")
        judge(log, world, told, REFUSED, DOES_NOT_OPEN)

        # It dies after it was sealed; then the log of verdicts is away as well.
        with monkeypatch.context() as dying:
            dying.setattr(Sender, "push", lambda *_: pytest.fail("dead"))
            with pytest.raises(pytest.fail.Exception):
                run(ARGUMENTS)
            capsys.readouterr()
        sealed = (person / "a.bin.keep.anew").read_bytes()
        with monkeypatch.context() as away:
            away.setattr(delivering, "asked_verdict", answering_nothing)
            code, told = uploaded(capsys)
        assert (code, told["sealed_anew"]) == (0, "a.bin.keep.anew")
        assert (person / "a.bin.keep.anew").read_bytes() == sealed
        [word] = anew_words(world, person)
        kept = read_keep(person / "a.bin.keep.anew")
        assert (word.size, word.sha256) == (kept.sealed.n_bytes, kept.sealed.sha256)
        assert word.sha256 != saved(person).commitment.ciphertext_sha256
        assert opened(person / "a.bin.keep.anew") == (content, saved(person).commitment.content)

        # Nothing is sealed or sent once more.
        code, told = uploaded(capsys)
        assert (code, told["verdict"]) == (0, "refused: does not open")
        assert (
            "could not open what was sent; north says that it holds it, sealed again"
            in told["proved"]
        )
        assert (person / "a.bin.keep.anew").read_bytes() == sealed
        judge(log, world, told, COLLECTED)
        code, told = uploaded(capsys)
        assert (code, told["verdict"]) == (0, "collected")
        assert len(anew_words(world, person)) == 1


def answering_nothing(*_):
    raise TransferError("the log of verdicts is away")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["changed", "gone"])
def test_what_is_not_there_as_it_was_cannot_be_sealed_anew(world, person, capsys, how):
    (person / "a.bin").write_bytes(b"income")
    with ExitStack() as held, world.verdict_log(DESTINATION) as log:
        run_bistro(world, "north", held)
        _, told = uploaded(capsys, "--ticket", "my.ticket")
        judge(log, world, told, REFUSED, DOES_NOT_OPEN)
        (person / "a.bin").unlink()
        if how == "changed":
            (person / "a.bin").write_bytes(b"outcome")
        code = run(["upload", "a.bin.keep", "--event", "event.toml", "--json"])
        (told,) = json.loads(capsys.readouterr().out)["files"]
        assert (code, told["sealed_anew"]) == (1, None)
        assert "a.bin: " in told["troubles"][-1]
        assert "put the old content back" in told["troubles"][-1] or how == "gone"
        assert "put it back" in told["troubles"][-1] or how == "changed"
        (person / "a.bin").write_bytes(b"income")
        code, told = uploaded(capsys)
        assert (code, told["sealed_anew"]) == (0, "a.bin.keep.anew")


def damage(path):
    data = bytearray(path.read_bytes())
    data[400:440] = bytes(40)
    path.write_bytes(data)


@pytest.mark.slow
def test_what_another_bistro_is_to_have_is_sealed_anew_where_it_was_damaged_since(
    world, person, capsys
):
    (person / "a.bin").write_bytes(b"income" * 99)
    with ExitStack() as held:
        run_bistro(world, "north", held)
        assert uploaded(capsys, "--ticket", "my.ticket")[1]["held_by"] == "north"
    damage(person / "a.bin.keep")
    with ExitStack() as held:
        run_bistro(world, "south", held)
        code, told = uploaded(capsys, "--elsewhere")
    assert (code, told["held_by"], told["sealed_anew"]) == (0, "south", "a.bin.keep.anew")
    assert told["troubles"][0].startswith("a.bin.keep: its ciphertext is damaged")


@pytest.mark.slow
def test_who_has_lost_the_ciphertext_sends_it_sealed_anew_at_once(world, person, capsys):
    (person / "a.bin").write_bytes(b"income" * 99)
    code, told = uploaded(capsys, "--ticket", "my.ticket", "--commit-only")
    assert (code, told["sealed_anew"]) == (0, None)
    damage(person / "a.bin.keep")
    code, told = uploaded(capsys)
    assert (code, told["sealed_anew"]) == (1, "a.bin.keep.anew")
    assert told["troubles"][0] == (
        "a.bin.keep: its ciphertext is damaged; it is sealed again from a.bin"
    )
    damage(person / "a.bin.keep.anew")
    with ExitStack() as held:
        run_bistro(world, "south", held)
        code, told = uploaded(capsys)
    assert (code, told["held_by"], told["sealed_anew"]) == (0, "south", "a.bin.keep.anew")
    assert "a.bin.keep.anew: was damaged, and was sealed again" in told["troubles"]
    assert "south says that it holds it, sealed again" in told["proved"]
    assert len(anew_words(world, person)) == 1
    assert opened(person / "a.bin.keep.anew")[0] == b"income" * 99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "why", "code", "said"),
    [
        (REFUSED, OTHER_CONTENT, 2, "refused, because it is not what was committed to"),
        (REFUSED, OTHER_TICKET, 2, f"refused, because it {OTHER_TICKET}"),
        (REFUSED, LATE, 1, "refused, because it is late"),
    ],
)
def test_other_verdicts_are_said_with_what_can_be_done(
    world, person, capsys, word, why, code, said
):
    (person / "a.bin").write_bytes(b"income")
    with ExitStack() as held, world.verdict_log(DESTINATION) as log:
        run_bistro(world, "north", held)
        _, told = uploaded(capsys, "--ticket", "my.ticket")
        judge(log, world, told, word, why)
        found, told = uploaded(capsys)
        assert (found, told["verdict"]) == (code, f"{word}: {why}")
        assert said in told["proved"]
        assert any("show" in trouble for trouble in told["troubles"]) == (code != 0)
        assert told["sealed_anew"] is None
        # Said to people, too.
        assert run(ARGUMENTS[:-1]) == code
        shown = " ".join("".join(capsys.readouterr()).split())
        assert said in shown
        assert ("show" in shown) == (code != 0)


@pytest.mark.slow
def test_superseded_is_well_where_what_stands_in_its_place_was_collected(world, person, capsys):
    """By one that was superseded, and so on: what counts in the end, or that none does."""
    second, third = marked_entry(world, person, 2), marked_entry(world, person, 3)
    strangers = marked_entry(world, person, 4)[:24] + bytes(8)
    (person / "a.bin").write_bytes(b"income")

    def judged(entry, word, why=""):
        judge(log, world, {"entry": entry.hex()}, word, why)
        code, told = uploaded(capsys)
        return code, told["verdict"], told["proved"], told["troubles"]

    with ExitStack() as held, world.verdict_log(DESTINATION) as log:
        run_bistro(world, "north", held)
        own = bytes.fromhex(uploaded(capsys, "--ticket", "my.ticket")[1]["entry"])
        verdict = f"superseded: {second.hex()}"
        code, said, proved, troubles = judged(own, SUPERSEDED, second.hex())
        assert (code, said) == (1, verdict)
        assert f"{second.hex()} counts instead, about which nothing is proved" in proved
        assert troubles[-1] == "run it again later; else show the organiser your receipts"
        code, said, proved, troubles = judged(second, REFUSED, NEVER_CAME)
        assert (code, said) == (1, verdict)
        assert "it does not count: " in proved
        assert f"{second.hex()} counts instead, and was refused, because it never came" in proved
        assert troubles[-1] == "neither of them counts: show the organiser your receipts"
        # No honest log takes that back: here it only says what is asked for.
        assert judged(second, SUPERSEDED, third.hex())[0] == 1
        code, said, proved, troubles = judged(third, COLLECTED)
        assert (code, said, troubles) == (0, verdict, [])
        assert f"{third.hex()} counts instead: proved by the destination's log" in proved
        # By each other: who says so is asked no longer than that takes.
        judge(log, world, {"entry": third.hex()}, SUPERSEDED, second.hex())
        assert uploaded(capsys)[0] == 1
        # A destination names somebody else's, which may have been collected.
        judge(log, world, {"entry": strangers.hex()}, COLLECTED)
        code, said, proved, troubles = judged(own, SUPERSEDED, strangers.hex())
        assert (code, said) == (1, f"superseded: {strangers.hex()}")
        assert "counts instead, but does not have the mark of your ticket" in proved
        assert troubles[-1] == (
            "no file of yours has it: show the organiser your receipt, and say so"
        )


@pytest.mark.slow
def test_superseded_is_not_well_where_nobody_says_what_became_of_the_other(
    world, person, capsys, monkeypatch
):
    (person / "a.bin").write_bytes(b"income")
    asked_verdict = delivering.asked_verdict

    def asked(event, entry, askers):
        if entry != own:
            raise TransferError("log: does not answer")
        return asked_verdict(event, entry, askers)

    with ExitStack() as held, world.verdict_log(DESTINATION) as log:
        run_bistro(world, "north", held)
        _, told = uploaded(capsys, "--ticket", "my.ticket")
        own = bytes.fromhex(told["entry"])
        monkeypatch.setattr(delivering, "asked_verdict", asked)
        other = marked_entry(world, person, 2).hex()
        judge(log, world, told, SUPERSEDED, other)
        code, told = uploaded(capsys)
    assert (code, told["verdict"]) == (1, f"superseded: {other}")
    assert "log: does not answer" in told["troubles"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_bistro_that_the_destinations_table_favours_is_pushed_to(world, person, capsys, name):
    (person / "a.bin").write_bytes(b"income")
    rows = tuple(BistroLoad(each, 0 if each == name else 10**9, 1e6) for each in NAMES)
    made = Loads(rows, (), world.event.id, NAMES.index(name) + 1, int(time.time()))
    body = made.signed(world.event, DESTINATION).data
    assert world.ask(world.services[0], "POST", "/loads", body).status == 200
    with ExitStack() as held:
        for each in NAMES:
            run_bistro(world, each, held)
        code, told = uploaded(capsys, "--ticket", "my.ticket")
    assert (code, told["held_by"]) == (0, name)


@pytest.mark.slow
def test_a_log_of_verdicts_that_is_away_is_asked_once_for_all_files(world, person, capsys, dialled):
    for name in ("a.bin", "b.bin", "c.bin"):
        (person / name).write_bytes(name.encode())
    with ExitStack() as held:
        run_bistro(world, "north", held)
        names = ["b.bin", "c.bin", "--ticket", "my.ticket"]
        assert run([*ARGUMENTS, *names]) == 0
    told = json.loads(capsys.readouterr().out)["files"]
    assert [each["held_by"] for each in told] == ["north"] * 3
    assert all("cannot be reached" in each["troubles"][-1] for each in told)
    assert dialled.count(int(world.event.verdicts_url.rpartition(":")[2])) == 1
    # All three went over one connection.
    assert dialled.count(port_of(world, "north")) == 1


@pytest.mark.slow
def test_what_a_bistro_has_lost_another_gets_and_both_words_are_kept(world, person, capsys):
    (person / "a.bin").write_bytes(b"income")
    with ExitStack() as held:
        run_bistro(world, "north", held)
        code, told = uploaded(capsys, "--ticket", "my.ticket")
        assert (code, told["held_by"]) == (0, "north")
    with ExitStack() as held:
        run_bistro(world, "south", held)
        # By itself it is not sent twice.
        assert uploaded(capsys)[1]["held_by"] == "north"
        code, told = uploaded(capsys, "--elsewhere")
        assert (code, told["held_by"]) == (0, "south")
        receipt = read_receipt((person / "a.bin.receipt.json").read_bytes())
        words = [read_bistro_receipt(t, world.event).bistro for t in receipt.bistro_receipts]
        assert words == ["north", "south"]
        code, told = uploaded(capsys, "--elsewhere")
        assert (code, told["held_by"]) == (0, "south")
        assert "all bistros of the event have signed already" in told["troubles"][-1]
