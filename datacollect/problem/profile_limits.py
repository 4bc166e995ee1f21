"""Hosts' limits by profiles of their machines: what binds there stands in for a measured limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import join
from datacollect.machine.profile import host_profile
from datacollect.problem.host_limits import LIMITS
from datacollect.problem.hourly_rates import HourlyRate, is_no_limit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.machine.profile import HostProfile
    from datacollect.machine.throughput import Throughput
    from datacollect.problem.contents import ProblemContents


def profile_at(name: str, base_dir: str | PathLike[str] | None, place: str) -> HostProfile:
    """Read the file that ``profile`` of a host names."""
    if name == "-":
        raise ProblemError(f"{place} must name a file, got '-'; only the problem can be piped in")
    try:
        return host_profile(Path(base_dir or ".", name))
    except ProblemError as error:
        raise ProblemError(f"{place}: {error}") from None


def limits_of_profile(profile: HostProfile) -> dict[str, Throughput]:
    """Return what a machine sends and receives as agents and pulls do, by the limit's key."""
    uplink, downlink = LIMITS
    return {uplink: profile.sends(tls=True), downlink: profile.receives(tls=True, to_disk=True)}


def with_profiles(
    hosts: Mapping[str, Mapping[str, Any]], base_dir: str | PathLike[str] | None
) -> tuple[dict[str, Mapping[str, Any]], dict[tuple[str, str], str]]:
    """Return what hosts say, with limits of their profiles, and which part each of these is.

    Where a host says a limit, too, the smaller counts.

    Parameters
    ----------
    hosts : mapping of str to mapping
        Values of each host's fields.
    base_dir : path-like or None
        What names of files are relative to.

    Raises
    ------
    ProblemError
        There is no such profile, it breaks a rule, or lacks what a limit needs.
    """
    found: dict[str, Mapping[str, Any]] = {**hosts}
    causes: dict[tuple[str, str], str] = {}
    for name in [name for name, said in hosts.items() if said["profile"] is not None]:
        said = found[name] = {**hosts[name]}
        place = join(join("hosts", name), "profile")
        profile = profile_at(said["profile"], base_dir, place)
        try:
            limits = limits_of_profile(profile)
        except ProblemError as error:
            raise ProblemError(f"{place}: {error}") from None
        for key, limit in limits.items():
            least = _smaller(said[key], limit.bytes_per_s)
            if least != said[key]:
                said[key], causes[key, name] = least, limit.binds
    return found, causes


def _smaller(said: Any, rate: float) -> Any:
    """Return what a host says of a limit, which may vary, nowhere above a rate."""
    if said is None or is_no_limit(said):
        return rate
    if isinstance(said, HourlyRate):
        return replace(said, bytes_per_s=tuple(min(each, rate) for each in said.bytes_per_s))
    if isinstance(said, list):
        return [min(each, rate) for each in said]
    return min(float(said), rate)


def limit_name(problem: ProblemContents, kind: str, host: str) -> str:
    """Return what people call a host's limit: the part of its machine that binds, if known.

    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> limit_name(problem, "downlink", "D")
    'downlink'
    >>> known = problem.replace(limit_causes={("downlink_bytes_per_s", "D"): "processor"})
    >>> limit_name(known, "downlink", "D")
    'processor'
    """
    return (problem.limit_causes or {}).get((f"{kind}_bytes_per_s", host), kind)
