"""The child's side of `limited`: a flow solver that answers requests from standard input."""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

from datacollect.errors import SolverError
from datacollect.solvers.choice import load_flow_solver


def serve() -> None:
    """Answer requests from standard input until it ends; runs in the child."""
    requests = sys.stdin.buffer
    # Solvers may print: standard output is for answers only.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    solver = load_flow_solver(pickle.load(requests))
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        answer: Any
        try:
            answer = getattr(solver, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - the parent raises it again
            answer = error
        answers.write(_dump(answer))
        answers.flush()


def _dump(answer: object) -> bytes:
    try:
        data = pickle.dumps(answer, protocol=5)
        pickle.loads(data)
    except Exception:  # noqa: BLE001 - pickling runs code of any type
        data = pickle.dumps(SolverError(f"{type(answer).__name__}: {answer}"))
    return data
