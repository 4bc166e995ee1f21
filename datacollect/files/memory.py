"""Memory that this process may have: whether it is short, and the message about it.

Libraries in C end the process, or a thread, without a word where they get no more addresses. So
where those are limited (``ulimit -v``, job systems) it is looked beforehand.
"""

from __future__ import annotations

import errno
import gc
import mmap
import os
import re
import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import DatacollectError
from datacollect.files.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a thread's stack takes where nothing limits it, on any system that this runs on, or less.
STACK_BYTES = 8 * 2**20
# What numpy takes with one thread, rounded up: 85 MB (numpy 2, x86-64).
LIBRARIES_BYTES = 96 * 2**20
RAISE_IT = "raise `ulimit -v`"
# Of the dynamic loader, which maps a library piece by piece (glibc's elf/dl-load.c).
_NO_SEGMENT = re.compile("failed to map segment|cannot map zero-fill|annot allocate memory")
_NO_THREAD = "start new thread"


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage in circles within: where much is read that has none, and all of it stays.

    Python would walk all of it again and again as it grows.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # All of it is old from now on: else it would be walked as soon as this ends.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def is_memory_short(error: BaseException) -> bool:
    """Return whether what has failed is that this process gets no more memory.

    A library that cannot be loaded for that is an `ImportError`, a thread that cannot be begun a
    `RuntimeError`; either has other reasons, too.

    >>> is_memory_short(MemoryError()), is_memory_short(ImportError("No module named 'x'"))
    (True, False)
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    if isinstance(error, ImportError):
        return _NO_SEGMENT.search(str(error)) is not None
    is_thread = isinstance(error, RuntimeError) and _NO_THREAD in str(error)
    return is_thread and not has_addresses(_stack_bytes())


def has_addresses(n_bytes: int) -> bool:
    """Say whether this process gets so many bytes of addresses: it takes them, and gives them back.

    >>> has_addresses(2**12), has_addresses(2**60)
    (True, False)
    """
    try:
        mmap.mmap(-1, n_bytes).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def is_limited() -> bool:
    """Return whether the addresses of this process are limited."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def require_addresses(n_bytes: int, what: str, n_threads: int = 0, or_else: str = "") -> None:
    """Raise `DatacollectError` where a limit leaves too few addresses.

    Where nothing is limited nothing is looked at.

    Parameters
    ----------
    n_bytes : int
    what : str
        Takes them.
    n_threads : int, optional
        For whose stacks there has to be room besides.
    or_else : str, optional
        Another remedy than a higher limit.
    """
    if not is_limited():
        return
    n_bytes += n_threads * _stack_bytes()
    if not has_addresses(n_bytes):
        raise DatacollectError(
            f"{memory_words()}; {what} takes {format_bytes(n_bytes)} more: {RAISE_IT}{or_else}"
        )


def require_libraries() -> None:
    """Raise `DatacollectError` where a limit leaves too few addresses for numpy to be loaded.

    Its OpenBLAS ends the process otherwise, and takes 40 MB more for each processor, for threads
    that nothing here needs: it is told to begin none.
    """
    if is_limited():
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        require_addresses(LIBRARIES_BYTES, "loading numpy")


def memory_words() -> str:
    """Return that memory is short, and how much of it this process has.

    >>> memory_words().startswith("memory is short: this process has ")
    True
    """
    if not is_limited():
        return f"memory is short: this process has {_has('VmRSS')}"
    most = format_bytes(resource.getrlimit(resource.RLIMIT_AS)[0])
    return f"memory is short: this process has {_has('VmSize')} of the {most} that it may use"


def _stack_bytes() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return STACK_BYTES if soft == resource.RLIM_INFINITY else soft


def _has(what: str) -> str:
    """Return how much of something this process has, as the kernel counts it."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:  # another system, or no more open files
        return "all"
    found = re.search(rf"^{what}:\s*(\d+) kB", text, re.MULTILINE)
    return format_bytes(1024 * int(found[1])) if found else "all"
