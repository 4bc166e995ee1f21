"""The hash of what has come of an upload, as it grows: nothing is read back for each push.

What came before the bistro started is hashed when all has come, and not before: then each byte is
read back once, however often the bistro was started, and whoever pushed it was cut.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class RunningHash:
    """The SHA-256 of an upload's first bytes; who has `lock` may use it.

    Attributes
    ----------
    lock : Lock
        Held from before a block is counted until it is hashed: blocks keep their order.
    n_bytes : int
        So many are hashed.

    Examples
    --------
    >>> hash_ = RunningHash()
    >>> hash_.follow(0, b"ab"), hash_.follow(7, b"not the next"), hash_.follow(2, b"c")
    (None, None, None)
    >>> hash_.n_bytes, hash_.digest() == hashlib.sha256(b"abc").digest()
    (3, True)
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_bytes = 0
        self._sha256 = hashlib.sha256()

    def follow(self, offset: int, block: bytes | bytearray) -> None:
        """Hash a block, if what came before it is hashed."""
        if offset == self.n_bytes:
            self._sha256.update(block)
            self.n_bytes += len(block)

    def catch_up(self, blocks: Iterable[bytes]) -> None:
        """Hash what is read back, from `n_bytes` on."""
        for block in blocks:
            self.follow(self.n_bytes, block)

    def copy(self) -> RunningHash:
        """Return it as it is now, to go `back_to`."""
        made = RunningHash()
        made.n_bytes, made._sha256 = self.n_bytes, self._sha256.copy()
        return made

    def back_to(self, before: RunningHash) -> None:
        """Be as before."""
        self.n_bytes, self._sha256 = before.n_bytes, before._sha256.copy()

    def digest(self) -> bytes:
        """Return the hash."""
        return self._sha256.digest()
