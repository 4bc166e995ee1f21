"""Certificates that do not count: what is wrong is said, and each remedy that is named works."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from instances.agents import KEY
from judges.misbehaving_server import Site, misbehaving_server
from judges.strict_client import EXAMPLE

import datacollect as dc
from datacollect.net.keys import write_private_key
from datacollect.net.tls import fingerprint_of

DAY = timedelta(days=1)
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def refused(tmp_path):
    """Return a function that pulls by a certificate's authority, else by what helps."""
    write_private_key(tmp_path / "key", KEY)

    def pull(leaf, ca, **entry):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        leaf.configure_cert(context)
        if ca is not None:
            ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
            entry = {"ca": str(tmp_path / "ca.pem")} | entry
        with misbehaving_server(Site({"/f": EXAMPLE}), tls=context) as server:
            collection = {
                "format": "datacollect-collection/1",
                "destination": "D",
                "key": str(tmp_path / "key"),
                "servers": {"W": {"url": server.url, "paths": ["f"]} | entry},
                "limits": {"patience_s": 1.0},
            }
            answer = dc.pull(collection, tmp_path / "into")
        return answer.missing[0].why if answer.missing else None

    return pull


def pin_of(leaf):
    der = ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())
    return fingerprint_of(der)


def test_an_expired_certificate_is_said_to_be_one_since_when_and_who_can_mend_it(refused):
    ca = trustme.CA()
    leaf = ca.issue_cert("127.0.0.1", not_before=NOW - 9 * DAY, not_after=NOW - 3 * DAY)
    why = refused(leaf, ca)
    assert f"it expired at {NOW - 3 * DAY:%Y-%m-%d %H:%M:%S} UTC" in why
    assert "the server's administrator has to renew it" in why
    assert " ca" not in why, "its ca is named already"
    assert refused(ca.issue_cert("127.0.0.1"), ca) is None


def test_until_then_its_fingerprint_helps(refused):
    ca = trustme.CA()
    leaf = ca.issue_cert("127.0.0.1", not_after=NOW - 3 * DAY)
    assert "until then give its fingerprint" in refused(leaf, ca)
    assert refused(leaf, None, fingerprint=pin_of(leaf)) is None


def test_a_certificate_of_later_makes_look_at_the_clock(refused):
    ca = trustme.CA()
    leaf = ca.issue_cert("127.0.0.1", not_before=NOW + 2 * DAY, not_after=NOW + 9 * DAY)
    why = refused(leaf, ca)
    assert f"it is valid from {NOW + 2 * DAY:%Y-%m-%d %H:%M:%S} UTC on" in why
    assert "check this host's clock" in why


def test_a_certificate_of_another_name_makes_correct_the_url_or_pin_it(refused):
    ca = trustme.CA()
    leaf = ca.issue_cert("other.example")
    why = refused(leaf, ca)
    assert "correct the host of its url" in why
    assert "by ca" not in why
    assert refused(leaf, None, fingerprint=pin_of(leaf)) is None


def test_a_certificate_of_another_authority_makes_name_that_one(refused):
    ca, other = trustme.CA(), trustme.CA()
    leaf = ca.issue_cert("127.0.0.1")
    assert "give the authority that signed it as ca, or its fingerprint" in refused(leaf, None)
    assert "the ca that is named has not signed it" in refused(leaf, other)
    assert refused(leaf, ca) is None
