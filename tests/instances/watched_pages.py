"""Pages in a browser, watched until something holds there."""

from __future__ import annotations

import time

import pytest

PATIENCE_S, LOOKS_AGAIN_S = 300.0, 0.05


def wait_until(page, expression):
    """Return once a JavaScript expression is true.

    The browser's own waiting evaluates text within the page, which the pages' policy forbids. What
    is asked for from outside is allowed.
    """
    until_s = time.monotonic() + PATIENCE_S
    while not page.evaluate(expression):
        if time.monotonic() > until_s:
            pytest.fail(f"never true: {expression}")
        time.sleep(LOOKS_AGAIN_S)
