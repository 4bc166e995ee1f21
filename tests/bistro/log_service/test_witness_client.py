"""Answers of witnesses, read whole and bounded."""

from __future__ import annotations

import asyncio

from datacollect.bistro.log_service.witness_client import MOST_ANSWER_BYTES, WitnessClient


def asked(pieces: list[bytes]) -> tuple[int | None, bytes]:
    """Return what a client has of an answer that comes in pieces."""
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            # Each in a packet of its own.
            await asyncio.sleep(0.05)
        writer.close()
        closed.set()

    async def ask() -> tuple[int | None, bytes]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, WitnessClient() as client:
            found = await client.ask(f"http://127.0.0.1:{port}/add-checkpoint", b"")
            await closed.wait()
            return found

    return asyncio.run(ask())


def test_an_answer_in_pieces_is_read_to_its_end():
    assert asked([b"one ", b"two ", b"three"]) == (200, b"one two three")


def test_an_answer_without_end_is_cut():
    status, body = asked([b"x" * MOST_ANSWER_BYTES, b"y" * 10])
    assert (status, body) == (200, b"x" * MOST_ANSWER_BYTES)
