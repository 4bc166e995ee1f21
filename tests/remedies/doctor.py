"""What the doctor advises: done, and looked at again."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from instances.agents import KEY, running, write_agent
from remedies.trying import Example, call, in_new_folder

from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.dial_back import PATH, dial_back_handler
from datacollect.transfer.doctor.checks import examine
from datacollect.transfer.doctor.patient import Patient

ENTRY = {"url": "https://127.0.0.1:1", "fingerprint": f"sha256:{'ab' * 32}"}


def said(check, path):
    """Return the remedies that one check gives about an agent."""
    patient = Patient(path.name, path.parent, agent=AgentConfig.from_file(path))
    return " ".join(found.remedy for name, found in examine(patient) if name == check)


def about_tests(more):
    def look():
        table = f'[measure]\noperators = ["{KEY.public}"]\nbytes_per_hour = 1000\nudp_port = 9'
        text = f"{table}\n{more}"
        with in_new_folder() as folder, mock.patch.dict(os.environ, {"PATH": str(folder)}):
            return said("tests between hosts", write_agent(folder, "A", serve="data", more=text))

    return look


def dialled_back(*, is_there):
    """K connects to S1, at a port where nobody listens, or at its own."""

    def look():
        with in_new_folder() as folder:
            served = write_agent(folder, "S1", serve="data", connect_to={"K": "127.0.0.1:1"})
            with running(served) as s1:
                places = {"S1": s1.address if is_there else ("127.0.0.1", 1)}
                handlers = {PATH: dial_back_handler(places)}
                relay = write_agent(folder, "K", connect_to={"S1": "127.0.0.1:1"})
                with running(relay, handlers) as k:
                    served.write_text(served.read_text().replace("127.0.0.1:1", k.place))
                    return said("dial back", served)

    return look


def with_key(*lines):
    """Look at a collection's key, once some commands have run."""

    def look():
        with in_new_folder():
            tree = {"format": "datacollect-collection/1", "destination": "D", "key": "key"}
            Path("c.json").write_text(json.dumps(tree | {"agents": {"S": ENTRY}}))
            for line in lines:
                call(line)
            from datacollect.transfer.pull.config.file import Collection

            patient = Patient("c.json", Path(), collection=Collection.from_file("c.json"))
            found = examine(patient)
            return " ".join(each.remedy for name, each in found if name == "keys")

    return look


def over_a_relay(*, is_mended, is_away=False):
    """K, which leads to S, reaches it only where it runs, and K's file names the right port."""

    def look():
        with in_new_folder() as folder, ExitStack() as held:
            running_s = ExitStack()
            s = running_s.enter_context(running(write_agent(folder, "S", serve="data")))
            if is_away:
                running_s.close()
            held.enter_context(running_s)
            place = s.place if is_mended else "127.0.0.1:1"
            with running(write_agent(folder, "K", connect_to={"S": place})) as k:
                from datacollect.net.keys import write_private_key
                from datacollect.transfer.pull.config.file import Collection

                write_private_key(folder / "key", KEY)
                tree = {"format": "datacollect-collection/1", "destination": "D", "key": "key"}
                tree["agents"] = {
                    each.name: {
                        "url": f"https://{each.place}",
                        "fingerprint": each.agent.fingerprint,
                    }
                    for each in (s, k)
                }
                patient = Patient("c", folder, collection=Collection.from_dict(tree, folder))
                found = examine(patient)
                return " ".join(each.remedy for name, each in found if name == "other side")

    return look


def at_its_port(*, is_started):
    """Look at an agent's file, whose port is one that it has, or has left."""

    def look():
        with in_new_folder() as folder:
            path = write_agent(folder, "S1", serve="data")
            with running(path) as agent:
                path.write_text(path.read_text().replace("127.0.0.1:0", agent.place))
                if is_started:
                    return said("listening", path)
            return said("listening", path)

    return look


EXAMPLES = [
    Example(
        "start it: datacollect agent {}",
        at_its_port(is_started=False),
        at_its_port(is_started=True),
    ),
    Example("apt install traceroute", about_tests('tools = ["trace"]'), about_tests("tools = []")),
    Example(
        "open its port in the firewalls, or correct connect_to of {}'s file",
        dialled_back(is_there=False),
        dialled_back(is_there=True),
    ),
    Example(
        "name the key's file as key; `datacollect keys new FILE` makes one",
        with_key(),
        with_key("keys new key"),
    ),
    Example(
        "{} answers from here: let {} through to it, or correct its address in connect_to",
        over_a_relay(is_mended=False),
        over_a_relay(is_mended=True),
    ),
    Example(
        "start {} on its host; if it is running there, let {} through to it",
        over_a_relay(is_mended=True, is_away=True),
        over_a_relay(is_mended=True),
    ),
]
