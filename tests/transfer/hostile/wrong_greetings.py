"""Malformed greetings before there is a session: TLS and what comes instead."""

import itertools
from functools import partial

from transfer.hostile.hostile_agent import Gone, greet_slowly, reset, stay_silent


def closes(agent, client):
    raise Gone


def resets(agent, client):
    reset(client)


def says(data, then):
    def greet(agent, client):
        client.sendall(data)
        then(agent, client)

    return greet


def reads_and(then):
    def greet(agent, client):
        client.recv(65536)
        then(agent, client)

    return greet


def endless(data):
    def greet(agent, client):
        while not agent.over.is_set():
            client.sendall(data)
        raise Gone

    return greet


def drips(data, step_s):
    def greet(agent, client):
        for byte in itertools.cycle(data):
            client.sendall(bytes([byte]))
            if agent.over.wait(step_s):
                raise Gone

    return greet


RECORD = b"\x16\x03\x03\x40\x00" + b"\x02" + bytes(16383)
GREETINGS = {
    "ends at once": closes,
    "resets at once": resets,
    "silence": stay_silent,
    "silence after the client's greeting": reads_and(stay_silent),
    "ends after the client's greeting": reads_and(closes),
    "resets after the client's greeting": reads_and(resets),
    "rubbish": says(bytes(range(256)), stay_silent),
    "rubbish without end": endless(bytes(range(256)) * 64),
    "records without end": endless(RECORD),
    "empty records without end": endless(b"\x16\x03\x03\x00\x00" * 1000),
    "a record that is never whole": says(RECORD[:100], stay_silent),
    "an alert": says(b"\x15\x03\x03\x00\x02\x02\x28", stay_silent),
    "warnings without end": endless(b"\x15\x03\x03\x00\x02\x01\x5a" * 1000),
    "plain HTTP": says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", closes),
    "SSH": says(b"SSH-2.0-OpenSSH_9.2\r\n", stay_silent),
    "drops of rubbish": drips(RECORD, 0.3),
    "a byte of TLS every 0.05 s": partial(greet_slowly, step_s=0.05),
    "a byte of TLS every 5 s": partial(greet_slowly, step_s=5.0),
}
