"""The tree of RFC 6962, judged by its definition and by the vectors of Certificate Transparency."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import pytest

from datacollect.bistro.formats.log.tree import (
    EMPTY_ROOT,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    is_included,
    leaf_hash,
    tree_root,
)

# The entries of `merkletree/merkle_tree_test.go` of Certificate Transparency, and its roots.
VECTORS = [
    ("", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
    ("00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
    ("10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
    ("2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
    ("3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
    ("40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
    ("5051525354555657", "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
    (
        "606162636465666768696a6b6c6d6e6f",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ),
]
SIZES = range(20)
LEAVES = tuple(leaf_hash(bytes([i])) for i in SIZES)


def root_by_definition(leaves: tuple[bytes, ...]) -> bytes:
    """MTH of section 2.1, letter by letter."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    left, right = root_by_definition(leaves[:k]), root_by_definition(leaves[k:])
    return hashlib.sha256(b"\1" + left + right).digest()


@lru_cache
def node(level: int, index: int) -> bytes:
    """Read a tree of `LEAVES`; what it does not hold is not read."""
    stop = (index + 1) << level
    assert stop <= len(LEAVES)
    return root_by_definition(LEAVES[index << level : stop])


def test_roots_are_those_of_certificate_transparency():
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry, _ in VECTORS]
    for size, (_, root) in enumerate(VECTORS, start=1):

        def of(level, index):
            return root_by_definition(tuple(leaves[index << level : (index + 1) << level]))

        assert tree_root(size, of).hex() == root
    assert tree_root(0, node) == EMPTY_ROOT


@pytest.mark.parametrize("size", SIZES)
def test_roots_follow_the_definition(size):
    assert tree_root(size, node) == root_by_definition(LEAVES[:size])


@pytest.mark.parametrize("size", SIZES[1:])
def test_every_leaf_is_proved_at_its_index_and_nowhere_else(size):
    root = root_by_definition(LEAVES[:size])
    for index in range(size):
        proof = inclusion_proof(index, size, node)
        assert is_included(LEAVES[index], index, size, proof, root)
        for other in range(-1, size + 1):
            if other != index:
                assert not is_included(LEAVES[index], other, size, proof, root)
        assert not is_included(LEAVES[index - 1], index, size, proof, root) or size == 1
        assert not is_included(LEAVES[index], index, size, [*proof, root], root)
        assert not is_included(LEAVES[index], index, size, proof, EMPTY_ROOT)
        if proof:
            assert not is_included(LEAVES[index], index, size, proof[:-1], root)


@pytest.mark.parametrize("size", SIZES)
def test_growth_is_proved_and_nothing_else(size):
    root = root_by_definition(LEAVES[:size])
    forked = root_by_definition((*LEAVES[: size - 1], leaf_hash(b"another"))) if size else b""
    for old_size in range(size + 1):
        old = root_by_definition(LEAVES[:old_size])
        proof = consistency_proof(old_size, size, node)
        assert is_consistent(old_size, old, size, root, proof)
        assert not is_consistent(old_size, old, size, root, [*proof, root])
        assert not is_consistent(old_size, bytes(32), size, root, proof)
        if old_size == size > 0 or size > 0 < old_size:
            assert not is_consistent(old_size, old, size, forked, proof)
        for i in range(len(proof)):
            assert not is_consistent(old_size, old, size, root, proof[:i] + proof[i + 1 :])
    assert not is_consistent(size + 1, root, size, root, [])


def test_proofs_of_what_is_not_there_are_refused():
    with pytest.raises(ValueError, match="tree of 3 leaves, got 3"):
        inclusion_proof(3, 3, node)
    with pytest.raises(ValueError, match="must be 0 to 3, got 4"):
        consistency_proof(4, 3, node)
