"""Problem files: from their trees to what problems say, and back."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.clock import Clock, parsed
from datacollect.files.documents import PROBLEM_FORMAT
from datacollect.files.kinds import join, shown
from datacollect.problem import calendar
from datacollect.problem.bandwidth_intervals import intervals_of
from datacollect.problem.calendar_tree import calendar_tree
from datacollect.problem.connection_rates import RATE_COLUMNS, rates_of
from datacollect.problem.contents import ProblemContents
from datacollect.problem.fields import PROBLEM
from datacollect.problem.host_limits import LIMITS, SHOWN, said_of, split_hourly, with_hours
from datacollect.problem.hosts import Held, SharedBottleneck
from datacollect.problem.hourly_rates import NO_LIMIT, is_no_limit
from datacollect.problem.link_table import read_link_table
from datacollect.problem.manifest import backlogs_of_files, read_manifest
from datacollect.problem.production import production_of_trees, production_tree
from datacollect.problem.profile_limits import with_profiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.hourly_rates import HourlyRate
    from datacollect.problem.link_table import LinkTable
    from datacollect.problem.open_links import OpenLinks


def contents_of(
    tree: Mapping[str, Any], base_dir: str | PathLike[str] | None = None
) -> ProblemContents:
    """Return what the tree of a problem file says.

    Parameters
    ----------
    tree : mapping
        What TOML or JSON say, as dicts, lists, texts and numbers.
    base_dir : path-like, optional
        What ``bandwidth_csv`` and profiles are relative to; by default the working directory.

    Raises
    ------
    ProblemError
        The message names place, rule, value and remedy.

    Examples
    --------
    >>> contents = contents_of(
    ...     {
    ...         "destination": "D",
    ...         "hosts": {"S": {"backlog_bytes": 1_000_000}, "D": {}},
    ...         "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 250_000.0}],
    ...     }
    ... )
    >>> contents.backlog_bytes.tolist()
    [1000000, 0]
    """
    values = PROBLEM.read(tree)
    hosts, causes = with_profiles(values["hosts"], base_dir)
    index = {name: i for i, name in enumerate(hosts)}
    require_host(values["destination"], "destination", index)
    clock = calendar.clock_of(values)
    hours = calendar.daily_hours(values)
    periods_s = calendar.period_starts(values, clock)
    if hours is not None:
        periods_s = [float(i) for i in range(len(hours))]  # until they are unrolled
    held = held_of(values["held"], index)
    table = None
    if values["bandwidth_csv"] is not None:
        table = read_csv(values["bandwidth_csv"], base_dir, index, periods_s, with_windows=True)
    manifest, backlogs = None, [host["backlog_bytes"] for host in hosts.values()]
    if values["manifest"] is not None:
        name = values["manifest"]
        manifest = read_manifest(Path(base_dir or ".", name))
        stated = {host for host, said in tree["hosts"].items() if "backlog_bytes" in said}
        backlogs = backlogs_of_files(manifest, hosts, stated, name)
    limits, hourly = _limits(hosts, periods_s)
    contents = ProblemContents(
        names=tuple(hosts),
        destination=values["destination"],
        backlog_bytes=np.array(backlogs, dtype=object),
        release_s=calendar.releases(hosts, clock),
        periods_s=np.zeros(1) if periods_s is None else np.array(periods_s, dtype=float),
        shared=_shared(values["shared"], index),
        held=held,
        storage_bytes=_or_unlimited("storage_bytes", hosts),
        **limits,
        **_shown(hosts),
        most_connections=_or_unlimited("most_connections", hosts),
        **production_of_trees(hosts, backlogs),
        # None becomes NaN.
        latitude=np.array([host["latitude"] for host in hosts.values()], dtype=float),
        longitude=np.array([host["longitude"] for host in hosts.values()], dtype=float),
        **link_columns(values["links"], index, periods_s, table),
        clock=clock,
        manifest=manifest,
        file_tolerance=values["file_tolerance"],
        measured_s=_measured_s(values, table),
        bandwidth_intervals=intervals_of(values["links"]),
        limit_causes=causes or None,
    )
    contents, hours = with_hours(contents, hours, hourly)
    return calendar.recurring(contents, hours, _windows(values, table))


def _windows(values: Mapping[str, Any], table: LinkTable | None) -> tuple[OpenLinks, ...]:
    """Return when links are open, as hosts, links and the CSV say."""
    names = tuple(values["hosts"])
    links = [(link["from"], link["to"], link["open"]) for link in values["links"]]
    if table is not None:
        ends = zip(table.link_from.tolist(), table.link_to.tolist(), table.windows, strict=True)
        links += [(names[tail], names[head], windows) for tail, head, windows in ends]
    hosts = {name: host["open"] for name, host in values["hosts"].items()}
    return calendar.windows_of_contents(hosts, links)


def _measured_s(values: Mapping[str, Any], table: LinkTable | None) -> float | None:
    """Return when the oldest bandwidths were measured, in seconds since 1970."""
    said = [] if table is None or table.measured_s is None else [table.measured_s]
    if values["measured_at"] is not None:
        # An instant with its offset is one in any zone; to_dict writes UTC.
        has_offset = parsed(values["measured_at"], "measured_at").tzinfo is not None
        zone = None if has_offset else values["timezone"]
        clock = Clock.of(values["measured_at"], zone, "measured_at")
        said.append(clock.start.timestamp())
    return min(said, default=None)


def tree_of(problem: ProblemContents) -> dict[str, Any]:
    """Return the tree that `contents_of` reads back as the same contents.

    Everything is in it, links included; what has its default value is left out.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> tree_of(problem)["links"]
    [{'from': 'S', 'to': 'D', 'bandwidth_bytes_per_s': 5.0}]
    """
    tree: dict[str, Any] = {"format": PROBLEM_FORMAT, "destination": problem.destination}
    if problem.clock is not None:
        tree["start"] = problem.clock.start.isoformat()
        if isinstance(problem.clock.zone, ZoneInfo):
            tree["timezone"] = problem.clock.zone.key
    if problem.measured_s is not None:
        tree["measured_at"] = datetime.fromtimestamp(problem.measured_s, UTC).isoformat()
    if len(problem.periods_s) > 1:
        tree["periods_s"] = problem.periods_s.tolist()
    tree["hosts"] = {name: _host_tree(problem, i) for i, name in enumerate(problem.names)}
    tree["links"] = _link_trees(problem)
    if problem.shared:
        tree["shared"] = [
            {
                "name": shared.name,
                "bandwidth_bytes_per_s": float(shared.bandwidth_bytes_per_s),
                "links": [list(pair) for pair in shared.links],
            }
            | {
                key: float(value)
                for key in ("capacity_bytes_per_s", "competitors")
                if (value := getattr(shared, key)) is not None
            }
            for shared in problem.shared
        ]
    if problem.held:
        tree["held"] = held_trees(problem.held)
    if problem.daily is not None and problem.daily.windows:
        return calendar_tree(problem, tree)
    return tree


def held_of(trees: Sequence[Mapping[str, Any]], index: Mapping[str, int]) -> tuple[Held, ...]:
    """Return what the rows of ``held`` say, in files of problems and of progress alike."""
    for i, entry in enumerate(trees):
        for key in ("host", "source"):
            require_host(entry[key], f"held[{i}].{key}", index)
    return tuple(Held(h["host"], h["source"], h["offset_bytes"], h["bytes"]) for h in trees)


def held_trees(held: Sequence[Held]) -> list[dict[str, Any]]:
    """Return the rows of ``held`` that `held_of` reads."""
    return [
        {
            "host": part.host,
            "source": part.source,
            "offset_bytes": int(part.offset_bytes),
            "bytes": int(part.n_bytes),
        }
        for part in held
    ]


# From a tree --------------------------------------------------------------------------------


def require_host(name: str, place: str, index: Mapping[str, int]) -> None:
    """Raise `ProblemError` unless a name is one of the hosts."""
    if name not in index:
        hint = nearest_hint(name, index)
        raise ProblemError(
            f"{place} must be one of the hosts, got {shown(name)}"
            + (hint or f"; declare it: [{join('hosts', name)}]")
        )


def _or_unlimited(key: str, hosts: Mapping[str, Mapping[str, Any]]) -> FloatArray:
    values = (host[key] for host in hosts.values())
    return np.array([math.inf if value is None else value for value in values], dtype=float)


def read_csv(
    name: str,
    base_dir: str | PathLike[str] | None,
    index: Mapping[str, int],
    periods_s: list[float] | None,
    *,
    with_windows: bool = False,
) -> LinkTable:
    """Read the file that ``bandwidth_csv`` names; a column ``open`` only `with_windows`."""
    if name == "-":
        raise ProblemError(
            "bandwidth_csv must name a file, got '-'; only the problem can be piped in"
        )
    path = Path(base_dir or ".", name)
    try:
        n_periods = None if periods_s is None else len(periods_s)
        return read_link_table(path, index, n_periods, with_windows=with_windows)
    except ProblemError as error:
        raise ProblemError(f"bandwidth_csv {error}") from None


def link_columns(
    links: Sequence[Mapping[str, Any]],
    index: Mapping[str, int],
    periods_s: list[float] | None,
    table: LinkTable | None,
) -> dict[str, Any]:
    """Bring the tree's links and those of the CSV together."""
    n_periods = 1 if periods_s is None else len(periods_s)
    for i, link in enumerate(links):
        for end in ("from", "to"):
            require_host(link[end], f"links[{i}].{end}", index)
        if link["from"] == link["to"]:
            raise ProblemError(
                f"links[{i}] must join two different hosts, got {shown(link['from'])} twice; "
                "remove it"
            )
    tail = np.array([index[link["from"]] for link in links], dtype=np.int64)
    head = np.array([index[link["to"]] for link in links], dtype=np.int64)
    price = np.array([link["price_per_gb"] for link in links], dtype=float)
    bandwidth = np.empty((n_periods, len(links)))
    for i, link in enumerate(links):
        place = f"links[{i}].bandwidth_bytes_per_s"
        bandwidth[:, i] = _forecast(link["bandwidth_bytes_per_s"], place, periods_s)
    rates = {
        key: np.array([link.get(key) for link in links], dtype=float)  # None becomes NaN
        for key in RATE_COLUMNS
    }
    if table is not None:
        rates = {key: np.concatenate([rates[key], table.rates[key]]) for key in RATE_COLUMNS}
        tail = np.concatenate([tail, table.link_from])
        head = np.concatenate([head, table.link_to])
        price = np.concatenate([price, table.price_per_gb])
        bandwidth = np.concatenate([bandwidth, table.bandwidth_bytes_per_s], axis=1)
    _reject_twice(tail * len(index) + head, links, tuple(index), table)
    return {
        "link_from": tail.astype(np.int32),
        "link_to": head.astype(np.int32),
        "bandwidth_bytes_per_s": bandwidth,
        "price_per_gb": price if price.any() else None,
        **{key: None if np.isnan(column).all() else column for key, column in rates.items()},
    }


def _limits(
    hosts: Mapping[str, Mapping[str, Any]], periods_s: list[float] | None
) -> tuple[dict[str, Any], list[tuple[str, int, HourlyRate]]]:
    """Return limits of hosts, a row for each period, and what they say by hours of the day."""
    said = {
        key: [
            math.inf
            if host[key] is None or is_no_limit(host[key])
            else _forecast(host[key], join(join("hosts", name), key), periods_s)
            for name, host in hosts.items()
        ]
        for key in LIMITS
    }
    return split_hourly(said, 1 if periods_s is None else len(periods_s))


def _shown(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what hosts were seen to do; of those without a limit, whatever is asked."""
    return {
        shown: np.array(
            [math.inf if is_no_limit(each[key]) else each[shown] or 0.0 for each in hosts.values()]
        )
        for key, shown in SHOWN.items()
    }


def _forecast(rates: Any, place: str, periods_s: list[float] | None) -> Any:
    """Return what may vary by period as it is, if it has as many numbers as there are periods."""
    if isinstance(rates, list) and (periods_s is None or len(rates) != len(periods_s)):
        rule = (
            "must be one number, as there is no periods_s"
            if periods_s is None
            else f"must be a number or one number per period of periods_s ({len(periods_s)})"
        )
        raise ProblemError(
            f"{place} {rule}, got {len(rates)} numbers; "
            + ("add periods_s, the starts of the periods" if periods_s is None else "list all")
        )
    return rates


def _reject_twice(
    key: np.ndarray[Any, Any],
    links: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    table: LinkTable | None,
) -> None:
    order = np.argsort(key, kind="stable")
    twice = np.diff(key[order]) == 0
    if twice.any():
        i = int(np.argmax(twice))
        one, two = (
            f"links[{j}]" if j < len(links) or table is None else table.place(j - len(links))
            for j in (int(order[i]), int(order[i + 1]))
        )
        tail, head = divmod(int(key[order[i]]), len(names))
        raise ProblemError(
            f"{two}: link {shown(names[tail])} -> {shown(names[head])} given twice, also in {one}; "
            "keep one"
        )


def _shared(
    trees: Sequence[Mapping[str, Any]], index: Mapping[str, int]
) -> tuple[SharedBottleneck, ...]:
    first: dict[str, int] = {}
    for i, tree in enumerate(trees):
        if first.setdefault(tree["name"], i) != i:
            raise ProblemError(
                f"shared[{i}].name must be unique, got {shown(tree['name'])}, also the name of "
                f"shared[{first[tree['name']]}]"
            )
        for j, pair in enumerate(tree["links"]):
            for name in pair:
                require_host(name, f"shared[{i}].links[{j}]", index)
    return tuple(
        SharedBottleneck(
            tree["name"],
            tree["bandwidth_bytes_per_s"],
            tuple((a, b) for a, b in tree["links"]),
            tree["capacity_bytes_per_s"],
            tree["competitors"],
        )
        for tree in trees
    )


# To a tree ----------------------------------------------------------------------------------


def _host_tree(problem: ProblemContents, i: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    if problem.backlog_bytes[i]:
        tree["backlog_bytes"] = int(problem.backlog_bytes[i])
    if problem.release_s[i]:
        tree["release_s"] = float(problem.release_s[i])
    tree |= production_tree(problem, i)
    if problem.storage_bytes[i] < math.inf:
        tree["storage_bytes"] = int(problem.storage_bytes[i])
    for key in LIMITS:
        limit = getattr(problem, key)
        if limit[0, i] < math.inf:
            tree[key] = said_of(limit, i)
        rates = getattr(problem, SHOWN[key])
        if rates is not None and np.isinf(rates[i]):
            tree.setdefault(key, NO_LIMIT)  # a limit counts, whatever was seen
        elif rates is not None and rates[i]:
            tree[SHOWN[key]] = float(rates[i])
    if problem.most_connections is not None and problem.most_connections[i] < math.inf:
        tree["most_connections"] = int(problem.most_connections[i])
    if problem.latitude is not None and problem.longitude is not None:
        place = {"latitude": problem.latitude[i], "longitude": problem.longitude[i]}
        tree |= {key: float(value) for key, value in place.items() if not np.isnan(value)}
    return tree


def _link_trees(problem: ProblemContents) -> list[dict[str, Any]]:
    names = problem.names
    bandwidth: list[Any] = (
        problem.bandwidth_bytes_per_s.T
        if len(problem.periods_s) > 1
        else problem.bandwidth_bytes_per_s[0]
    ).tolist()
    links = [
        {"from": names[a], "to": names[b], "bandwidth_bytes_per_s": value}
        for a, b, value in zip(
            problem.link_from.tolist(), problem.link_to.tolist(), bandwidth, strict=True
        )
    ]
    if problem.price_per_gb is not None:
        for link, price in zip(links, problem.price_per_gb.tolist(), strict=True):
            link["price_per_gb"] = price
    if problem.competitors is not None:
        for i, link in enumerate(links):
            link |= rates_of(problem, i)
    for link in links if problem.bandwidth_intervals else ():
        link |= (problem.bandwidth_intervals or {}).get((link["from"], link["to"]), {})
    return links
