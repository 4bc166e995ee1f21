"""A new kind of note to a bistro: its form, its row, the core's method, and who posts it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from instances.bistros import bistro_event, running_bistro

from datacollect.bistro.upload_server import requests, server
from datacollect.bistro.upload_server.core import Accepting
from datacollect.bistro.upload_server.messages import Action, Event, Posted, Refuse
from datacollect.bistro.upload_server.requests import BistroPost
from datacollect.errors import ProblemError


@dataclass(frozen=True, slots=True)
class GreetingSaid(Posted):
    """Somebody greets a bistro by its name."""

    name: str


def read(number: int, now_s: float, body: bytes, _event: object) -> GreetingSaid:
    word, _, name = body.decode(errors="replace").partition(" ")
    if word != "hello":
        raise ProblemError("the note must begin with hello")
    return GreetingSaid(number, now_s, name)


class Core(Accepting):
    def handle(self, event: Event) -> list[Action]:
        if not isinstance(event, GreetingSaid):
            return super().handle(event)
        return [] if event.name == self._bistro else [Refuse(event.request, 409, "another's name")]


@pytest.fixture
def event(tmp_path):
    return bistro_event(tmp_path)


def test_new_note_is_a_row_and_a_method_of_the_core(event, tmp_path, monkeypatch):
    monkeypatch.setitem(requests.POSTS, "/greeting", BistroPost(100, read))
    monkeypatch.setattr(server, "Accepting", Core)
    with running_bistro(tmp_path) as (client, _):
        asked = [
            client.ask("POST", "/greeting", body)[0]
            for body in (b"hello north", b"hello south", b"noise", bytes(101))
        ]
        client.close()
    assert asked == [200, 409, 403, 405]
