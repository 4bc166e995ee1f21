"""A certificate that is renewed while an agent runs."""

from __future__ import annotations

import socket
import ssl
import time

import pytest
from instances.agents import running, write_agent

from datacollect.errors import ProblemError
from datacollect.net import tls
from datacollect.net.tls import fingerprint_of, make_certificate, trusted_certificates


def shown(agent) -> str:
    """Return the fingerprint of what a client is shown."""
    context = tls.client_context()
    with (
        socket.create_connection(agent.address) as plain,
        context.wrap_socket(plain) as connection,
    ):
        return fingerprint_of(connection.getpeercert(binary_form=True) or b"")


def until(found, wanted) -> None:
    end_s = time.monotonic() + 60
    while found() != wanted:
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_renewed_certificate_is_shown_and_a_damaged_one_changes_nothing(tmp_path):
    (tmp_path / "own").mkdir()
    for name, data in zip(("c.pem", "k.pem"), make_certificate("R", "127.0.0.1"), strict=True):
        (tmp_path / name).write_bytes(data)
    more = '[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n'
    with running(write_agent(tmp_path, "R", serve="own", more=more)) as agent:
        first = shown(agent)
        chain, key = make_certificate("R", "127.0.0.1")
        (tmp_path / "c.pem").write_bytes(chain)
        # Half of it renewed: its key is another's.
        agent.agent.reread()
        until(lambda: [each["what"] for each in agent.records], ["failed", "collectors"])
        assert "the old one stays" in agent.records.pop(0)["why"]
        assert shown(agent) == first
        (tmp_path / "k.pem").write_bytes(key)
        agent.agent.reread()
        until(lambda: shown(agent), fingerprint_of(ssl.PEM_cert_to_DER_cert(chain.decode())))


def test_authorities_that_this_host_trusts_are_those_that_it_is_told(tmp_path, monkeypatch):
    chain, _ = make_certificate("own", "own.example")
    (tmp_path / "ca.pem").write_bytes(chain)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert trusted_certificates() == chain.decode()
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(ProblemError, match="install ca-certificates"):
        trusted_certificates()
