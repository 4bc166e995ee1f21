"""Reaching the scheduler of a Dask cluster, or saying why it cannot be reached."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from datacollect.errors import ProblemError, SimulationError
from datacollect.installation import command_for_extra, is_absent

DASK_TIMEOUT_S = 10


def connected(address: str, otherwise: str) -> Any:
    """Return a client of the Dask scheduler at an address; `otherwise`: what to do without Dask.

    Raises
    ------
    SimulationError
        Dask is not installed.
    ProblemError
        No scheduler answers there.
    """
    try:
        from distributed import Client, Security
    except ImportError as error:
        if not is_absent(error, "distributed"):
            raise
        raise SimulationError(
            f"Dask is not installed: {command_for_extra('dask')}; or {otherwise}"
        ) from None
    security: Any = Security  # their types are incomplete
    make: Any = Client
    try:
        _require_scheduler(address, security())
        return make(address, timeout=DASK_TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        why = str(error) or "the name is not known, or nothing comes back"  # a bare timeout
        raise ProblemError(
            f"no Dask scheduler answers at {address!r}: {why}; start one with "
            "`dask scheduler`, workers with `dask worker ADDRESS --nthreads 1`"
        ) from None


def _require_scheduler(address: str, security: Any) -> None:
    """Refuse an address where another than a scheduler answers, or nobody in time.

    Dask's own client waits for ever where somebody listens and says nothing, and takes for lengths
    what a web server answers.

    Raises
    ------
    ValueError
        The message says who answers, or why nobody does.
    """

    async def asked() -> Any:
        # Where nobody listens, the connection's own end comes first, and says why.
        return await asyncio.wait_for(_who_answers(address, security), DASK_TIMEOUT_S + 1)

    # In a thread of its own: in a notebook this one has a loop that runs.
    with ThreadPoolExecutor(1) as thread:
        try:
            who = thread.submit(asyncio.run, asked()).result()
        except TimeoutError:
            raise ValueError(f"no answer came within {DASK_TIMEOUT_S + 1} s") from None
        except (OSError, ValueError, TypeError) as error:
            # Of a connection that was tried again and again the last failure.
            raise ValueError(str(error.__cause__ or error).rpartition(">: ")[2]) from None
        except Exception:  # noqa: BLE001 - whatever it says may be taken for anything
            raise ValueError("what listens there is not Dask") from None
    if who != "Scheduler":
        raise ValueError(f"it is the address of a {who}")


async def _who_answers(address: str, security: Any) -> str:
    """Return what a server of Dask's says that it is, such as ``"Scheduler"``."""
    from distributed.comm.core import connect
    from distributed.core import send_recv

    any_connect: Any = connect
    arguments = security.get_connection_args("client")
    comm = await any_connect(address, timeout=DASK_TIMEOUT_S, **arguments)
    try:
        answer = await send_recv(comm, op="identity", serializers=["msgpack"])
    finally:
        comm.abort()
    return str(answer["type"])
