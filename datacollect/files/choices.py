"""Choices that users have, as types: editors and type checkers know every name.

Command-line options have these types, and fields of files take their words by `typing.get_args`.
Tables that say what each word does (of methods, solvers, preferences) stand where it is done; a
test compares them. Fields check what files say, and functions what callers pass: an annotation
refuses nothing at run time. Solvers' names stand in their registry, `datacollect.solvers.registry`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

# How a collection is planned; and, by real transfers and simulations, carried out.
Method: TypeAlias = Literal["direct", "best-path", "coordinated"]
RunMethod: TypeAlias = Literal["direct", "best-path", "coordinated", "adaptive"]

# What to minimise among equally good plans; how sources finish; what best-path compares first.
Preference: TypeAlias = Literal["relay-bytes", "storage", "earliest-arrival", "money"]
Finish: TypeAlias = Literal["early", "together"]
First: TypeAlias = Literal["direct", "relay"]

# Ways from samples to an estimate.
Estimator: TypeAlias = Literal["recent", "ewma", "mean", "last", "median", "quantile"]

# Which pairs a cycle of measurements tests.
MeasuredPairs: TypeAlias = Literal["all", "matter"]

# Simulations: the engine, how long control messages take, where data on a detour wait.
Engine: TypeAlias = Literal["ns3", "fluid"]
Control: TypeAlias = Literal["delayed", "free"]
Relays: TypeAlias = Literal["queues", "chains"]
