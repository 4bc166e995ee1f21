"""What a server does with signals ends with it."""

import asyncio
import os
import signal

import pytest

from datacollect.bistro.http.signals import Told, given_back


@pytest.fixture
def hup_is_ignored():
    """As by `nohup`, or where a session is left."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hup_is_ignored")
def test_a_signal_that_was_ignored_is_ignored_again():
    """A loop alone would leave the default behind, which ends the process."""
    reread = []

    async def serve():
        told = Told(lambda: reread.append(1), pytest.fail)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        await told.to_end.wait()

    with given_back():
        asyncio.run(serve())
    assert reread == [1]
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGHUP)
