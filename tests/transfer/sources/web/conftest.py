"""Pulls from servers that stand in a test, into one folder."""

import pytest
from instances.agents import KEY

import datacollect as dc
from datacollect.net.keys import write_private_key


@pytest.fixture
def pulled(tmp_path):
    """Return a function that pulls from a tiny server, in the end or again."""
    write_private_key(tmp_path / "key", KEY)

    def pull(tiny, entry, *, patience_s=20.0, agents=None, options=None, **limits):
        collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(tmp_path / "key"),
            "agents": agents or {},
            "servers": {"W": {"plain_http": True} | entry},
            "limits": {"patience_s": patience_s, "timeout_s": 20.0, "connections": 4} | limits,
        }
        return dc.pull(collection, tmp_path / "into", **options or {})

    return pull


@pytest.fixture
def arrived(tmp_path):
    """Return a function that reads all files of the server that have come."""
    base = tmp_path / "into/W"

    def read():
        return {str(p.relative_to(base)): p.read_bytes() for p in base.rglob("*") if p.is_file()}

    return read
