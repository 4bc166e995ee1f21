"""What tests of whole pulls have, for the few here that need one."""

from transfer.pull.conftest import agents, collection_of

__all__ = ["agents", "collection_of"]
