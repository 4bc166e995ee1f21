"""Links that share a wire, from tests of two together and alone: three links, one wire of two."""
