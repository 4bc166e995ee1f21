"""A relay that does what it likes with the bytes of others."""

import contextlib
import socket
import time

from transfer.pull.lying_agent import LyingAgent

from datacollect.net.connect import ESTABLISHED, parse_connect

# So many bytes pass untouched: TLS has greeted, and files are on their way.
UNTOUCHED_BYTES = 40_000
CHUNK_BYTES = 16 * 1024


def altered(chunks, number):
    """Change one byte of the chunk that comes after the untouched ones."""
    if number == 0:
        chunks[0] = chunks[0][:-1] + bytes([chunks[0][-1] ^ 1])
    return chunks


def twice(chunks, number):
    return chunks * 2 if number % 3 == 0 else chunks


def none(chunks, number):
    return [] if number % 3 == 0 else chunks


def halves_swapped(chunks, number):
    middle = len(chunks[0]) // 2
    return [chunks[0][middle:], chunks[0][:middle]] if number % 3 == 0 else chunks


def late(chunks, number):
    time.sleep(0.02)
    return chunks


def much_later(chunks, number):
    time.sleep(1.5)
    return chunks


def rubbish(chunks, number):
    return [bytes(len(chunks[0]))]


def silence(chunks, number):
    time.sleep(30)
    return []


def the_end(chunks, number):
    raise OSError("cut off")


# What becomes of the bytes that pass after the first ones, by what it is called.
PASSING = {
    "alters a byte": altered,
    "sends chunks twice": twice,
    "leaves chunks out": none,
    "swaps halves of chunks": halves_swapped,
    "delays a little": late,
    "delays for longer than a step may take": much_later,
    "sends zeros instead": rubbish,
    "falls silent": silence,
    "cuts off": the_end,
}
# What it answers to CONNECT, and whether it stays then.
ANSWERS = {
    "answers nothing": (b"", True),
    "ends without an answer": (b"", False),
    "refuses with 403": (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", False),
    "refuses with 429": (b"HTTP/1.1 429 No\r\nContent-Length: 2\r\n\r\nno", False),
    "refuses with terminal escapes": (b"HTTP/1.1 502 No\r\n\r\n\x1b[2J\x07\xff\xfe", False),
    "answers rubbish": (bytes(range(256)) * 100, True),
    "has a head without end": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000, True),
    "says yes and sends rubbish": (ESTABLISHED + bytes(range(256)), True),
    "says yes and falls silent": (ESTABLISHED, True),
    "says yes and ends": (ESTABLISHED, False),
    "redirects": (b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\n\r\n", False),
}
BEHAVIOURS = [*PASSING, *ANSWERS, "drips its answer", "connects to somebody else"]


class HostileRelay(LyingAgent):
    """Relays to `connect_to`, and does what `behaviour` says; none: it relays as it should."""

    behaviour = None

    def _relay(self, client):
        if self.behaviour is None or self.behaviour in PASSING:
            super()._relay(client)
            return
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1) or b"\r\n\r\n"
        self.calls.append(("CONNECT", parse_connect(head).host))
        if self.behaviour == "drips its answer":
            for byte in ESTABLISHED:
                client.sendall(bytes([byte]))
                time.sleep(0.3)
        elif self.behaviour == "connects to somebody else":
            other = socket.create_connection(self.address)  # this relay's own TLS
            self._open.append(other)
            client.sendall(ESTABLISHED)
            self._both_ways(client, other)
        else:
            answer, stays = ANSWERS[self.behaviour]
            client.sendall(answer)
            if stays:
                client.settimeout(30)
                while client.recv(65536):
                    pass
        client.close()

    def _both_ways(self, client, other):
        import threading

        threading.Thread(target=super()._pump, args=(client, other), daemon=True).start()
        super()._pump(other, client)

    def _pump(self, one, other):
        """Pass bytes on; those that the source sends as `behaviour` says."""
        change = PASSING.get(self.behaviour)
        if change is None:
            super()._pump(one, other)
            return
        passed, number = 0, 0
        with contextlib.suppress(OSError):
            while data := one.recv(CHUNK_BYTES):
                passed += len(data)
                chunks = [data]
                if passed > UNTOUCHED_BYTES:
                    chunks, number = change(chunks, number), number + 1
                for chunk in chunks:
                    other.sendall(chunk)
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.close()
