"""How many steps of the interpreter a call takes: no other load of a machine changes that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def n_steps(call: Callable[[], object]) -> int:
    """Return how many steps a call takes."""
    found = 0

    def trace(frame: FrameType, what: str, _: object) -> Any:
        nonlocal found
        frame.f_trace_opcodes = True
        found += what == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return found
