"""Rules for what the values of a scenario file say together; each by itself its kind checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, naming
from datacollect.files.kinds import wrong
from datacollect.methods.choice import METHODS, own_methods
from datacollect.methods.options.names import OVER_CHAINS
from datacollect.methods.options.spec import IN_ALL, PER_SOURCE
from datacollect.scenario.fields import UNKNOWN, WITH_TOPOLOGY

if TYPE_CHECKING:
    from collections.abc import Mapping


def require_one_network(values: Mapping[str, Any]) -> None:
    """Refuse a scenario with neither a topology nor a problem, or with parts of both."""
    if values["problem"] is not None:
        for name in ("probe_scale", "topology", "hosts", *WITH_TOPOLOGY):
            if values[name] is not None:
                raise ProblemError(
                    f"{name}: a scenario with a problem has no {name}, which needs a topology; "
                    "remove one of them"
                )
        return
    if values["truth_csv"] is not None:
        raise ProblemError("truth_csv needs a problem; add problem = ..., or remove it")
    for name in ("topology", "hosts"):
        if values[name] is None:
            raise ProblemError(f"key {name} is missing; add [{name}], or name a problem instead")


def check_together(sections: Mapping[str, Any]) -> None:
    """Refuse values of one section that contradict each other.

    Raises
    ------
    ProblemError
        The message names place, rule, value and remedy.
    """
    _check_method(sections["method"])
    if "topology" in sections:
        if sections["estimates"]["kind"] == UNKNOWN:
            _check_unknown(sections["estimates"], sections["method"])
        _check_hosts(sections["hosts"])
        _check_background(sections["background"])
        _check_estimates(sections["estimates"])
        _check_backlog(sections["backlog"])


def _check_hosts(hosts: Mapping[str, Any]) -> None:
    if not hosts["sources"]:
        raise ProblemError("hosts.sources must not be empty; add [[hosts.sources]]")
    places = [("hosts.destination", hosts["destination"])]
    for group in ("sources", "relays"):
        places += [(f"hosts.{group}[{i}]", entry) for i, entry in enumerate(hosts[group])]
    for place, entry in places:
        if entry["at"] is not None:
            for key in ("domain", "among"):
                if entry[key] is not None:
                    raise wrong(
                        f"{place}.{key}",
                        "cannot be combined with at",
                        entry[key],
                        "keep one of them",
                    )


def _check_background(background: Mapping[str, Any]) -> None:
    if background["least_mean_s"] > background["most_mean_s"]:
        raise wrong(
            "background.least_mean_s",
            f"must be <= most_mean_s ({background['most_mean_s']:g})",
            background["least_mean_s"],
            "swap least_mean_s and most_mean_s",
        )
    for i, pair in enumerate(background["pairs"]):
        if (pair["kind"] == "udp") != (pair["rate_bytes_per_s"] is not None):
            rule = "is for UDP and is needed there"
            raise wrong(f"background.pairs[{i}].rate_bytes_per_s", rule, pair["rate_bytes_per_s"])


def _check_estimates(estimates: Mapping[str, Any]) -> None:
    if (estimates["kind"] == "given") != (estimates["file"] is not None):
        raise wrong(
            "estimates.file",
            'is for kind = "given" and is needed there',
            estimates["file"],
            f"kind is {estimates['kind']!r}",
        )
    for i, wire in enumerate(estimates["shared"] or ()):
        if wire["bandwidth_bytes_per_s"] is not None and wire["connections"] is not None:
            raise ProblemError(
                f"estimates.shared[{i}]: bandwidth_bytes_per_s and connections cannot be combined; "
                "give one of them, or none for the wire's rate"
            )


def _check_backlog(backlog: Mapping[str, Any]) -> None:
    least, most = backlog["least_bytes"], backlog["most_bytes"]
    if (least is None) != (most is None):
        raise ProblemError("backlog: least_bytes and most_bytes belong together; give both")
    if least is not None and least > most:
        raise wrong(
            "backlog.least_bytes",
            f"must be <= most_bytes ({most})",
            least,
            "swap least_bytes and most_bytes",
        )


def _connections_per(method: Mapping[str, Any]) -> str:
    """Return what numbers of connections are given for, which the method's controller says."""
    return METHODS.get(method["name"]).required_controller().connections_per


def _check_method(method: Mapping[str, Any]) -> None:
    with naming("method.name"):
        connections_per = _connections_per(method)
    shapes = [key for key in ("slot_s", "scaled_slot_s", "chunk_s") if method[key] is not None]
    if len(shapes) > 1:
        raise ProblemError(f"method: {' and '.join(shapes)} cannot be combined; give one of them")
    totals = [key for key in ("total_streams", "streams_as") if method[key] is not None]
    if len(totals) > 1:
        raise ProblemError("method: total_streams and streams_as cannot be combined; give one")
    if method["time_slot_s"] is not None:
        _check_time_slots(method)
    if method["replan_s"] is not None:
        _check_replanning(method)
    budgets = [key for key in ("connections", "connections_as") if method[key] is not None]
    if len(budgets) > 1:
        raise ProblemError("method: connections and connections_as cannot be combined; give one")
    if method["as_many_times"] is not None:
        _check_times(method)
    moves, over_chains = connections_per == IN_ALL, method["relays"] == OVER_CHAINS
    if over_chains and not moves:
        _check_chains(method)
    hands_out = moves or over_chains or method["replan_s"] is not None
    if method["piece_bytes"] is not None and not hands_out:
        raise wrong(
            "method.piece_bytes",
            "is for what hands pieces out on the way: adaptive, chains, replan_s",
            method["piece_bytes"],
            "leave it out",
        )


def _check_chains(method: Mapping[str, Any]) -> None:
    """A plan's routes pull their shares: no times, no slots, no connections of each hop."""
    instead = "or leave out method.relays"
    needed = {"timing": "asap", "pace": False, "lanes": 1, "shared_connections": False}
    per_source = _connections_per(method) == PER_SOURCE
    needed |= {"streams": 1} if per_source else {}
    for key, value in needed.items():
        if method[key] != value:
            rule = f'must be {str(value).lower()} with relays = "chains"'
            raise wrong(f"method.{key}", rule, method[key], instead)
    shapes = ("slot_s", "scaled_slot_s", "replan_s")
    turns = ("total_streams", "streams_as", "at_a_time", "time_slot_s", "order")
    for key in (*shapes, *turns) if per_source else shapes:
        if method[key] is not None:
            rule = (
                'cannot be combined with relays = "chains", '
                "over which each route pulls its share at once"
            )
            raise wrong(f"method.{key}", rule, method[key], instead)


def _check_unknown(estimates: Mapping[str, Any], method: Mapping[str, Any]) -> None:
    """Refuse plans to keep to, and wires stated wrongly, where links are unknown."""
    where = 'estimates.kind = "unknown"'
    for key in ("perturbations", "shared"):
        if estimates[key]:
            raise wrong(
                f"estimates.{key}",
                f"cannot be combined with {where}: there are no estimates",
                list(estimates[key]),
                "leave it out",
            )
    if METHODS.get(method["name"]).has_relays and method["relays"] != OVER_CHAINS:
        raise wrong(
            "method.relays",
            f'must be "chains" with {where}, where links are learned on the way',
            method["relays"],
            'set it, or take method.name = "direct"',
        )
    for key in ("connections_as", "streams_as", "as_many_times"):
        if method[key] is not None:
            rule = f"cannot be combined with {where}: another method's plan would mean nothing"
            raise wrong(f"method.{key}", rule, method[key], "give method.connections")
    if method["timing"] != "asap" or method["pace"] or method["time_slot_s"] is not None:
        raise ProblemError(
            f'method: {where} cannot be combined with timing = "planned", pace and time_slot_s: '
            "nobody knows when a transfer ends; leave them out"
        )


def _check_times(method: Mapping[str, Any]) -> None:
    """It multiplies another plan's connections, so there has to be one."""
    connections_per = _connections_per(method)
    streams_as = connections_per == PER_SOURCE and method["streams_as"] is not None
    chains_as = method["relays"] == OVER_CHAINS and method["connections_as"] is not None
    moves = connections_per == IN_ALL or chains_as
    if not streams_as and (not moves or method["connections"] is not None):
        raise wrong(
            "method.as_many_times",
            "needs another method's plan, whose connections it multiplies",
            method["as_many_times"],
            'use it in direct with streams_as = "coordinated", over chains with connections_as, '
            "or in adaptive without connections, or leave it out",
        )


def _check_time_slots(method: Mapping[str, Any]) -> None:
    """Check turns: who sends in one is planned; over one connection per source."""
    if method["at_a_time"] is None:
        raise wrong(
            "method.time_slot_s",
            "needs at_a_time, how many sources send in each turn",
            method["time_slot_s"],
            "add method.at_a_time",
        )
    if method["streams"] != 1 or method["total_streams"] or method["streams_as"]:
        raise ProblemError(
            "method: time_slot_s cannot be combined with streams, total_streams and streams_as: "
            "in turns each source has one connection; leave them out"
        )


def _check_replanning(method: Mapping[str, Any]) -> None:
    """Check that what is planned again meanwhile is kept to, pipelined, and leaves at once."""
    if METHODS.get(method["name"]).replan is None:
        kept_to = " or ".join(spec.name for spec in own_methods() if spec.replan is not None)
        rule = f"must be {kept_to} with replan_s"
        raise wrong("method.name", rule, method["name"], "or leave out method.replan_s")
    needed = {"timing": "asap", "pace": False}
    for key, value in needed.items():
        if method[key] != value:
            rule = f"must be {str(value).lower()} with replan_s"
            raise wrong(f"method.{key}", rule, method[key], "or leave out method.replan_s")
    for key in ("slot_s", "scaled_slot_s"):
        if method[key] is not None:
            rule = "cannot be combined with replan_s, which is for pipelined plans"
            raise wrong(f"method.{key}", rule, method[key], "leave out one of them")
