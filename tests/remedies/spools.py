"""Remedies about data that wait: spools of agents, and pulls in slots."""

from __future__ import annotations

import runpy
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from unittest import mock

from instances.agents import KEY, running, write_agent
from remedies.trying import Example, call, in_new_folder

import datacollect as dc
from datacollect.files.held_folder import Held
from datacollect.net.keys import write_private_key
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.protocol.messages import FileEntry, Read, WireSegment
from datacollect.transfer.spool import drops, messages
from datacollect.transfer.spool.conversation import Conversation
from datacollect.transfer.spool.messages import AskedPiece, Order
from datacollect.transfer.spool.sealing import SealedPiece
from datacollect.transfer.spool.store import SpoolStore

SPOOL = 'spool = { folder = "spool", bytes = 1_000_000 }'
TO_S = {"S": "127.0.0.1:9"}


def apart(folder):
    """Read an agent's file whose spool lies in a folder, beside what is served."""

    def read():
        with in_new_folder() as here:
            more = f'spool = {{ folder = "{folder}", bytes = 5 }}'
            return AgentConfig.from_file(write_agent(here, "K", serve="data", more=more))

    return read


def with_spool(line, more=SPOOL, *, is_held=False):
    """Run a command about an agent whose spool keeps a piece of the collection c1."""

    def run():
        with in_new_folder() as folder, ExitStack() as held:
            write_agent(folder, "K", connect_to=TO_S, more=more)
            if more:
                store = SpoolStore(Held(folder / "spool"), "K", 10**6)
                number = store.order("x", "c1", time.time() + 60, time.time())
                store.wait(store.add(number, SealedPiece("S", 0, bytes(32), 36), bytes(100)), 0.0)
                store.close()
            if is_held:
                held.callback(Held(folder / "spool").close)
                held.enter_context(mock.patch.object(drops, "TAKEN_WITHIN_S", 0.0))
            return call(line)

    return run


def in_slots(slot_s, links):
    """Pull a file of an agent S in slots."""

    def pull():
        with in_new_folder() as folder:
            path = write_agent(folder, "S", serve="data")
            (folder / "data" / "a").write_text("a")
            write_private_key(folder / "collector.key", KEY)
            with running(path) as s:
                agent = {"url": s.agent.url, "fingerprint": s.agent.fingerprint}
                tree = {
                    "format": "datacollect-collection/1",
                    "destination": "D",
                    "key": str(folder / "collector.key"),
                    "agents": {"S": agent},
                    "hosts": {"T": {}},
                    "links": links,
                }
                return dc.pull(tree, folder / "into", slot_s=slot_s)

    return pull


def ordered(connect_to):
    """Order a piece of S at a relay."""

    def order():
        with in_new_folder() as folder, ExitStack() as held:
            path = write_agent(folder, "K", connect_to=connect_to, more=SPOOL)
            k, now_s = held.enter_context(running(path)), time.time()
            ticket = sign_ticket(
                Ticket(KEY.public, "K", "spool", "c1", issued_s=now_s, expires_s=now_s + 60), KEY
            )
            piece = AskedPiece(0, Read((WireSegment(FileEntry("a", 5, 0, 1), 0, 5),)))
            body = messages.order_body(
                Order("S", "sha256:" + "0" * 64, "v4.public.x", now_s + 60, (piece,))
            )
            conversation = Conversation("K", k.address, k.agent.fingerprint)
            held.callback(conversation.close)
            conversation.ask(messages.KEEP, ticket, body, 10_000)

    return order


def kept_by(modules):
    """Load what keeps rows."""

    def load():
        with mock.patch.dict(sys.modules, modules):
            sys.modules.pop("datacollect.files.held_folder", None)
            runpy.run_module("datacollect.files.held_folder")

    return load


LINK = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1e6}
# Twelve hours from now on.
LATE = datetime.now(UTC) + timedelta(hours=12)
LATE_LINK = {**LINK, "from": "T", "open": f"{LATE:%H:%M}-{LATE + timedelta(hours=1):%H:%M} UTC"}
DROP = "spool drop K.toml"

EXAMPLES = [
    Example(
        "must lie apart from the folder that is served",
        apart("data/spool"),
        apart("spool"),
    ),
    Example(
        "{}: the agent keeps nothing; give it room",
        with_spool("spool list K.toml", more=""),
        with_spool("spool list K.toml"),
    ),
    Example(
        "--collection must be one that is known in {}",
        with_spool(f"{DROP} --collection c2"),
        with_spool(f"{DROP} --collection c1"),
    ),
    Example(
        "{}: the process that holds the spool does not answer; stop the agent, and start this "
        "command again",
        with_spool(DROP, is_held=True),
        with_spool(DROP),
    ),
    Example(
        "--slot needs links, and the collection file names none",
        in_slots(1.0, []),
        in_slots(1.0, [LINK]),
    ),
    Example(
        "--slot must be at least a round trip, got {} s",
        in_slots(1e-6, [LINK]),
        in_slots(1.0, [LINK]),
    ),
    Example(
        "--slot is too short, got {} s: {} slots pass until {} -> {} opens at {}",
        in_slots(1.0, [LINK, LATE_LINK]),
        in_slots(60.0, [LINK, LATE_LINK]),
    ),
    Example(
        "this agent may not connect to the source of the pieces",
        ordered({"T": "127.0.0.1:9"}),
        ordered(TO_S),
    ),
    Example(
        "spool: apsw is not installed, which keeping pieces needs: {command_for_package}",
        kept_by({"apsw": None}),
        kept_by({}),
    ),
]
