"""Requests to connect: what is written is read again, and nothing else."""

from __future__ import annotations

import pytest

from datacollect.errors import ProblemError
from datacollect.net.connect import connect_request, parse_connect


@pytest.mark.parametrize("name", ["S2", "s2.example", "192.0.2.1", "::1", "2001:db8::1", "a_b-c.d"])
@pytest.mark.parametrize("port", [1, 443, 65535])
def test_a_request_comes_back_as_it_was(name, port):
    request = parse_connect(connect_request(name, "v4.public.x", port))
    assert (request.host, request.port, request.token) == (name, port, "v4.public.x")


@pytest.mark.parametrize(
    "target",
    [
        *(
            "S2",
            "S2:",
            ":443",
            "S2:0",
            "S2:65536",
            "S2:99999",
            "S2:44x",
            "[::1]",
            "::1:443",
            "[S2]:443",
        ),
        *("a@b:443", "a/b:443", "[::1:443", "S2:443:443", "S2:+443", "S2:-1", "[S2]:443"),
    ],
)
def test_a_target_that_is_no_host_and_port_is_refused(target):
    with pytest.raises(ProblemError, match="names a wrong target, which must be HOST:PORT"):
        parse_connect(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())


@pytest.mark.parametrize("name", ["a b", "a\r\nb", "é", "x" * 300])
def test_a_name_that_would_break_the_request_is_not_written(name):
    with pytest.raises(ProblemError, match="visible ASCII characters"):
        connect_request(name, "x")
