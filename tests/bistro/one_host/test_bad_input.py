"""What an organiser may get wrong: each is named, with what helps, and nothing is written."""

from __future__ import annotations

import socket
import stat

import pytest
from instances.ports import free_port

from datacollect.bistro.one_host import certificates, checks
from datacollect.bistro.one_host.checks import deadline_of
from datacollect.bistro.one_host.places import Places
from datacollect.commands.main import run
from datacollect.errors import ProblemError
from datacollect.net.tls import make_certificate

ROSTER = "person,email\nAnn Lee,a@x.example\n"
TIME = "2090-01-31 18:00"


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Returns what the command says that refuses, and has written nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(ROSTER)

    def said(*more: str, deadline: str | None = TIME, people: str | None = "people.csv") -> str:
        given = [] if deadline is None else ["--deadline", deadline]
        given += [] if people is None else ["--people", people]
        way = [] if {"--certificate", "--acme", "--no"} & {*more} else ["--try"]
        more = tuple(each for each in more if each != "--no")
        port = [] if "--address" in more else ["--address", f"127.0.0.1:{free_port()}"]
        code = run(["event", "quickstart", "essay", *given, *way, *port, *more])
        assert code == 2
        assert not (tmp_path / "essay").exists()
        return " ".join(capsys.readouterr().err.split())

    return said


def test_deadline_that_has_passed_is_no_time_or_is_not_there(refused):
    assert "--deadline must lie in the future, got '2020-01-31 18:00'" in refused(
        deadline="2020-01-31 18:00"
    )
    assert "--deadline" in refused(deadline="31.1.2090 18:00")
    assert 'add --deadline "2027-01-31 18:00"' in refused(deadline=None)


def test_zone_that_is_none_and_an_hour_that_its_clocks_do_not_show(refused):
    assert "did you mean 'Europe/Zurich'?" in refused("--timezone", "Europe/Zürich")
    said = refused("--timezone", "Europe/Zurich", deadline="2035-03-25 02:30")
    assert "--deadline" in said


def test_roster_with_somebody_twice_in_another_encoding_or_missing(refused, tmp_path):
    roster = tmp_path / "people.csv"
    roster.write_text("person\nAnn Lee\nBob\nAnn Lee\n")
    assert "'Ann Lee' in lines 2 and 4" in refused()
    roster.write_bytes("person\nZoë\n".encode("latin-1"))
    assert "'CSV UTF-8'" in refused()
    assert "no such file" in refused(people="nobody.csv").lower()
    assert "add --people FILE.csv" in refused(people=None)


def test_port_that_another_program_listens_at(refused):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("--address", f"127.0.0.1:{port}", "--listen", f"127.0.0.1:{port}")
    assert f"--listen: 127.0.0.1:{port}: Address already in use" in said
    assert "choose another port" in said


def test_one_way_to_a_certificate_is_needed(refused):
    assert "one way to a certificate is needed, got none" in refused("--no")
    said = refused("--acme", "a@x.example", "--certificate", "c.pem", "--certificate-key", "k.pem")
    assert "got several ways" in said
    assert "belong together" in refused("--certificate", "c.pem")


def test_certificate_of_another_host_and_a_clock_that_nobody_vouches_for(
    refused, tmp_path, monkeypatch
):
    chain, key = make_certificate("hand-in.example", "hand-in.example")
    (tmp_path / "c.pem").write_bytes(chain)
    (tmp_path / "k.pem").write_bytes(key)
    given = ("--certificate", "c.pem", "--certificate-key", "k.pem")
    here = ("--listen", f"127.0.0.1:{free_port()}")
    monkeypatch.setattr(checks, "is_synchronised", lambda: False)
    assert "vouch for it yourself by --trust-clock" in refused(*given, *here)
    said = refused(*given, *here, "--trust-clock", "--address", "other.example:8443")
    assert "is for (hand-in.example), got 'other.example'" in said
    (tmp_path / "k.pem").write_bytes(make_certificate("b", "b")[1])
    said = refused(*given, *here, "--trust-clock", "--address", "hand-in.example:8443")
    assert "must be a certificate and its key" in said


def test_folder_of_something_else_is_left_alone(refused, tmp_path, capsys):
    (tmp_path / "essay").mkdir()
    (tmp_path / "essay/thesis.tex").write_text("mine")
    command = ["event", "quickstart", "essay", "--deadline", TIME, "--people", "people.csv"]
    assert run([*command, "--try"]) == 2
    assert "holds something else" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "essay").iterdir()] == ["thesis.tex"]


def test_list_of_witnesses_without_one_or_of_one_without_an_address(tmp_path):
    from instances.events import event_of

    from datacollect.bistro.formats.event.policy import policy_of, read_witnesses

    event = event_of()
    # What this program itself writes for other verifiers is such a list.
    rows = read_witnesses(policy_of(event), "policy")
    assert [row["vkey"] for row in rows] == [each.vkey.text for each in event.witnesses]
    assert [row["url"] for row in rows] == [each.url for each in event.witnesses]
    with pytest.raises(ProblemError, match="policy: must name witnesses"):
        read_witnesses("log a b\n# witness\n", "policy")
    with pytest.raises(ProblemError, match=r"policy, line 2: must be 'witness NAME VKEY URL'"):
        read_witnesses(f"\nwitness w {rows[0]['vkey']}\n", "policy")
    with pytest.raises(ProblemError, match="policy, line 1: its key"):
        read_witnesses("witness w vkey https://w.example\n", "policy")


def test_deadline_of_a_day_is_its_end_by_the_clocks_of_the_zone():
    """30 March 2090 is in summer time, two hours ahead of UTC."""
    instant = deadline_of("2090-03-30", "Europe/Zurich", 0.0)
    assert instant.isoformat() == "2090-03-30T23:59:59+02:00"
    assert deadline_of("2090-03-30T12:00:00+00:00", "Europe/Zurich", 0.0).hour == 14


def test_certbot_gets_a_certificate_once_and_what_it_says_is_shown(tmp_path, monkeypatch):
    """Played by a script, which notes how it was called."""
    chain, key = make_certificate("hand-in.example", "hand-in.example")
    (tmp_path / "chain").write_bytes(chain)
    (tmp_path / "key").write_bytes(key)
    program = tmp_path / "bin/certbot"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho $* >> {tmp_path}/asked\n"
        f"if [ -e {tmp_path}/ill ]; then echo 'no such domain' >&2; exit 1; fi\n"
        f"mkdir -p {tmp_path}/essay/acme/live/hand-in.example\n"
        f"cp {tmp_path}/chain {tmp_path}/essay/acme/live/hand-in.example/fullchain.pem\n"
        f"cp {tmp_path}/key {tmp_path}/essay/acme/live/hand-in.example/privkey.pem\n"
    )
    program.chmod(stat.S_IRWXU)
    places = Places(tmp_path / "essay")
    places.folder.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ProblemError, match="sudo apt install certbot"):
        certificates.certbots_certificate(places, "hand-in.example", "a@x.example")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    (tmp_path / "ill").touch()
    with pytest.raises(ProblemError, match=r"no such domain.*port 80"):
        certificates.certbots_certificate(places, "hand-in.example", "a@x.example")
    (tmp_path / "ill").unlink()
    for _ in range(2):
        found = certificates.certbots_certificate(places, "hand-in.example", "a@x.example")
    assert certificates.host_of(found) == "hand-in.example"
    certificates.renew_by_certbot(places)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["certonly", "certonly", "renew"]
    assert "--standalone" in asked[1]


@pytest.mark.parametrize(
    ("name", "host", "is_for"),
    [
        ("a.example", "A.example", True),
        ("*.example", "a.example", True),
        ("*.example", "b.a.example", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("a.example", "b.example", False),
    ],
)
def test_name_of_a_certificate_covers_a_host(name, host, is_for):
    assert certificates._is_for(name, host) is is_for
