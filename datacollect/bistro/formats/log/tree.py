"""Hashes of a tree whose leaves are a log's entries (RFC 6962, section 2.1, 2013).

Whatever reads the tree is given as a function: `node(level, index)` is the root of the complete
subtree of 2^level leaves that begins at leaf index * 2^level. Proofs are made of such nodes alone,
and only of those that the tree holds.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Nodes: TypeAlias = Callable[[int, int], bytes]

EMPTY_ROOT = hashlib.sha256(b"").digest()

# No proof in a tree that can be counted is longer.
MOST_HASHES = 63


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry.

    >>> leaf_hash(b"").hex()[:8]
    '6e340b9c'
    """
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees side by side."""
    return hashlib.sha256(b"\1" + left + right).digest()


def nodes_of(leaves: Sequence[bytes]) -> Nodes:
    """Return what reads the tree of some leaves' hashes, all of them in memory.

    >>> one, two = leaf_hash(b"1"), leaf_hash(b"2")
    >>> tree_root(2, nodes_of([one, two])) == node_hash(one, two)
    True
    """
    levels = [[*leaves]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([node_hash(*below[i : i + 2]) for i in range(0, len(below) - 1, 2)])
    return lambda level, index: levels[level][index]


def complete_subtrees(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the fewest complete subtrees that hold the leaves from `start` to before `stop`.

    >>> list(complete_subtrees(0, 7)), list(complete_subtrees(6, 7))
    ([(2, 0), (1, 2), (0, 6)], [(0, 6)])
    """
    while start < stop:
        level = (stop - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        yield level, start >> level
        start += 1 << level


def range_root(start: int, stop: int, node: Nodes) -> bytes:
    """Return the root over the leaves from `start` to before `stop`.

    A subtree of the tree begins at a multiple of the power of two that is not below its length.
    """
    if start == stop:
        return EMPTY_ROOT
    hashes = [node(level, index) for level, index in complete_subtrees(start, stop)]
    root = hashes.pop()
    while hashes:
        root = node_hash(hashes.pop(), root)
    return root


def tree_root(size: int, node: Nodes) -> bytes:
    """Return the root of the tree of the first `size` leaves."""
    return range_root(0, size, node)


def inclusion_proof(index: int, size: int, node: Nodes) -> list[bytes]:
    """Return the hashes that lead from a leaf to the root of the first `size` leaves.

    Parameters
    ----------
    index : int
        Of the leaf, from 0.
    size : int
        Leaves of the tree, more than `index`.
    node : function
        Reads the tree.

    Returns
    -------
    list of bytes
        From the leaf's sibling up.
    """
    if not 0 <= index < size:
        raise ValueError(f"index must be in a tree of {size} leaves, got {index}")
    start, stop, siblings = 0, size, []
    while stop - start > 1:
        middle = start + _left_size(stop - start)
        if index < middle:
            siblings.append((middle, stop))
            stop = middle
        else:
            siblings.append((start, middle))
            start = middle
    return [range_root(*sibling, node) for sibling in reversed(siblings)]


def consistency_proof(old_size: int, size: int, node: Nodes) -> list[bytes]:
    """Return the hashes that prove that a tree has only grown since it had `old_size` leaves.

    Empty where the sizes are equal, or the old one is 0: there is nothing to prove.
    """
    if not 0 <= old_size <= size:
        raise ValueError(f"old_size must be 0 to {size}, got {old_size}")
    if old_size in (0, size):
        return []
    start, stop, is_whole, ranges = 0, size, True, []
    while old_size != stop:
        middle = start + _left_size(stop - start)
        if old_size <= middle:
            ranges.append((middle, stop))
            stop = middle
        else:
            ranges.append((start, middle))
            start, is_whole = middle, False
    if not is_whole:
        ranges.append((start, stop))
    return [range_root(*each, node) for each in reversed(ranges)]


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether a leaf's hash stands at an index of the tree with that root (RFC 9162, 2.1.3.2).

    Parameters
    ----------
    leaf : bytes
        As `leaf_hash` of the entry.
    index, size : int
    proof : sequence of bytes
        As `inclusion_proof` makes it.
    root : bytes

    Examples
    --------
    >>> one, two = leaf_hash(b"1"), leaf_hash(b"2")
    >>> is_included(two, 1, 2, [one], node_hash(one, two))
    True
    """
    return path_root(leaf, index, size, proof) == root


def path_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """Return the root that a leaf's hash and its path make; None: no tree of that size has it."""
    if not 0 <= index < size:
        return None
    at, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return None
        if at & 1 or at == last:
            found = node_hash(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(
    old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether a tree has grown from one root to another, and only grown (RFC 9162, 2.1.4.2)."""
    if not 0 <= old_size <= size:
        return False
    if old_size in (0, size):
        expected = EMPTY_ROOT if old_size == 0 else root
        empty = size > 0 or root == EMPTY_ROOT
        return not proof and old_root == expected and empty
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    at, last = old_size - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old_found = found = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old_found, found = node_hash(sibling, old_found), node_hash(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and old_found == old_root and found == root


def _left_size(n_leaves: int) -> int:
    """Return the largest power of two below a number of leaves, at least two."""
    return 1 << ((n_leaves - 1).bit_length() - 1)
