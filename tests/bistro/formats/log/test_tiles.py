"""Tiles: their paths, what a growing tree writes, and proofs read from them."""

from __future__ import annotations

import hashlib

import pytest

from datacollect.bistro.formats.log.tiles import (
    Edge,
    Tile,
    TileReader,
    bundle_of,
    entries_of,
    hashes_of,
    tiles_of,
)
from datacollect.bistro.formats.log.tree import (
    consistency_proof,
    inclusion_proof,
    is_consistent,
    is_included,
    leaf_hash,
    tree_root,
)
from datacollect.errors import ProblemError


def test_paths_are_those_of_the_format():
    """1234067 is its own example; indices of three digits or fewer have no x."""
    assert Tile(0, 1_234_067).path == "tile/0/x001/x234/067"
    assert Tile(0, 999).path == "tile/0/999"
    assert Tile(0, 1000).path == "tile/0/x001/000"
    assert Tile(-1, 3, 7).path == "tile/entries/003.p/7"
    for tile in (Tile(0, 1_234_067), Tile(-1, 3, 7), Tile(7, 0, 255)):
        assert Tile.parse(tile.path) == tile


@pytest.mark.parametrize(
    "path",
    [
        "tile/0/x000/001",
        "tile/0/1",
        "tile/0/001.p/256",
        "tile/0/001.p/0",
        "tile/0/001.p/01",
        "tile/8/001",
        "tile/00/001",
        "tile/0/../001",
        "tile/0/001\n",
        "tile/entries/x001",
        "tile/0/00\u0661",
    ],
)
def test_other_paths_are_refused(path):
    with pytest.raises(ProblemError, match="a tile's path must be"):
        Tile.parse(path)


def test_a_tree_of_seventy_thousand_has_the_tiles_that_the_format_counts():
    """Its example: 273 full and one of 112 at level 0, one and 17 at level 1, 1 at level 2."""
    tiles = [tile for tile in tiles_of(70_000) if tile.level >= 0]
    assert sum(tile.level == 0 and tile.width == 256 for tile in tiles) == 273
    assert [tile for tile in tiles if tile.width < 256 or tile.level] == [
        Tile(0, 273, 112),
        Tile(1, 0),
        Tile(1, 1, 17),
        Tile(2, 0, 1),
    ]
    assert list(tiles_of(256)) == [Tile(-1, 0), Tile(0, 0), Tile(1, 0, 1)]


def test_a_growing_tree_writes_what_proofs_need():
    """600 leaves, a checkpoint after each 7: from its tiles alone roots and proofs are right."""
    written: dict[Tile, bytes] = {}
    edge, leaves, roots, n_before = Edge(), [], {0: hashlib.sha256(b"").digest()}, 0
    for i in range(600):
        leaves.append(leaf_hash(str(i).encode()))
        written.update(edge.append(leaves[-1]))
        if edge.size % 7 == 0:
            written.update(edge.partial_tiles())
            new = {tile for tile in tiles_of(edge.size, n_before) if tile.level >= 0}
            assert new <= written.keys()
            roots[edge.size], n_before = edge.root(), edge.size
            assert Edge.read(edge.size, written.__getitem__) == edge
    reader = TileReader(n_before, written.__getitem__)
    for size, root in roots.items():
        assert tree_root(size, reader.node) == root
        proof = consistency_proof(size, n_before, reader.node)
        assert is_consistent(size, root, n_before, roots[n_before], proof)
    for index in range(0, n_before, 5):
        proof = inclusion_proof(index, n_before, reader.node)
        assert is_included(leaves[index], index, n_before, proof, roots[n_before])


def test_bundles_hold_entries_with_their_lengths():
    entries = [b"", b"a" * 32, b"b" * 65_535]
    data = bundle_of(entries)
    assert data[:2] == b"\0\0"
    assert entries_of(data, Tile(-1, 0, 3)) == entries
    for cut in (data[:-1], data + b"\0", data[:1], b""):
        with pytest.raises(ProblemError, match="must hold 3 entries"):
            entries_of(cut, Tile(-1, 0, 3))
    with pytest.raises(ProblemError, match="must have 64 bytes, got 63"):
        hashes_of(bytes(63), Tile(0, 0, 2))
    with pytest.raises(ProblemError, match=r"tile/0/000\.p/2 must have 64 bytes, got 96"):
        TileReader(2, lambda _: bytes(96)).node(1, 0)
