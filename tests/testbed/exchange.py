"""Plain transfers in a bed, to measure it: a script of the standard library.

exchange.py serve ADDRESS            says its port; sends to each client until that goes away
exchange.py fetch ADDRESS PORT SECONDS    prints bytes per second, after half a second of warm-up:
                                     the median of stretches of a tenth, of which a pause is one
exchange.py echo ADDRESS             says its port; sends datagrams back
exchange.py ask ADDRESS PORT NUMBER  prints seconds from question to answer, one line for each
                                     datagram that came back
exchange.py flood ADDRESS PORT NUMBER     asks so often at once; prints how many answers came back
"""

import socket
import statistics
import sys
import threading
import time

TCP_CONGESTION, STRETCH = 13, 0.1


def serve(address):
    listener = socket.create_server((address, 0))
    say(listener.getsockname()[1])
    while True:
        client, _ = listener.accept()
        threading.Thread(target=send, args=(client,), daemon=True).start()


def send(client):
    client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    block = bytes(1 << 16)
    try:
        while True:
            client.sendall(block)
    except OSError:
        return


def fetch(address, port, seconds):
    with socket.create_connection((address, int(port)), timeout=10) as connection:
        receive(connection, 0.5)
        say(receive(connection, float(seconds)))


def receive(connection, seconds):
    room, rates, ends = bytearray(1 << 16), [], time.monotonic() + seconds
    while (began := time.monotonic()) < ends or len(rates) * STRETCH < seconds:
        n = 0
        while (lasted := time.monotonic() - began) < STRETCH:
            n += connection.recv_into(room)
        rates.append(n / lasted)
    return statistics.median(rates)


def echo(address):
    with socket.socket(type=socket.SOCK_DGRAM) as answering:
        answering.bind((address, 0))
        say(answering.getsockname()[1])
        while True:
            answering.sendto(*answering.recvfrom(2048))


def ask(address, port, number):
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        asking.connect((address, int(port)))
        asking.settimeout(0.1)
        for i in range(int(number)):
            began = time.monotonic()
            asking.send(b"%d" % i)
            try:
                asking.recv(2048)
            except OSError:
                continue
            say(time.monotonic() - began)


def flood(address, port, number):
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        asking.connect((address, int(port)))
        for i in range(int(number)):
            asking.send(b"%d" % i)
        asking.settimeout(3.0)
        n = 0
        try:
            while n < int(number):
                asking.recv(2048)
                n += 1
        except OSError:
            pass
        say(n)


def say(value):
    sys.stdout.write(f"{value}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for do in (serve, fetch, echo, ask, flood):
        if do.__name__ == sys.argv[1]:
            do(*sys.argv[2:])
