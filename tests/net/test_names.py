"""One rule for names of hosts, and one for host:port, wherever they stand."""

import pytest

from datacollect.errors import ProblemError
from datacollect.net.connect import connect_request, parse_connect
from datacollect.net.names import host_and_port, host_port_text, require_host_name


@pytest.mark.parametrize("name", ["S1", "a", "0", "s-1.example_x", "A" * 100])
def test_names_that_can_be(name):
    require_host_name(name, "name")
    assert parse_connect(connect_request(name, "v4.public.x")).host == name


@pytest.mark.parametrize(
    "name", ["", "_lab", "-x", ".x", "a/b", "a b", "é", "a\0", "a:1", "A" * 101, "a\n"]
)
def test_names_that_cannot(name):
    with pytest.raises(ProblemError, match="must be a name of ASCII letters, digits"):
        require_host_name(name, "name")


@pytest.mark.parametrize(
    ("text", "found"),
    [("x:1", ("x", 1)), ("[::1]:65535", ("::1", 65535)), ("s2.example:443", ("s2.example", 443))],
)
def test_host_and_port_and_back(text, found):
    assert host_and_port(text) == found
    assert host_port_text(*found) == text


@pytest.mark.parametrize("text", ["x", "x:", "x:0", "x:65536", "::1:7", "[::1]", "a b:1", "u@h:1"])
def test_what_is_no_host_and_port(text):
    with pytest.raises(ProblemError, match="must be HOST:PORT with a port of 1 to 65535"):
        host_and_port(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [("s1.example", ("s1.example", 443)), ("s1:7", ("s1", 7)), ("[::1]", ("::1", 443))],
)
def test_a_host_alone_has_the_default_port(text, address):
    assert host_and_port(text, default_port=443) == address


@pytest.mark.parametrize("text", ["", "s1:", "::1", "[::1", "u@s1", "s1/x", "s1?q"])
def test_with_a_default_port_too_a_host_must_be_one(text):
    with pytest.raises(ProblemError, match="must be HOST:PORT"):
        host_and_port(text, default_port=443)
