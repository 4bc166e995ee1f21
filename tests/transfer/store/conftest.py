"""Fixtures of whole pulls, for the few tests here that need one."""

from transfer.pull.conftest import agents, collection_of

__all__ = ["agents", "collection_of"]
