"""Progress files: what lies where, new estimates and lost hosts, for planning again."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import PROGRESS_FORMAT
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.file import held_of, held_trees, link_columns, read_csv, require_host
from datacollect.schedule.data.contents import ProgressContents
from datacollect.schedule.data.fields import PROGRESS
from datacollect.schedule.data.new_links import NewLinks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike


def contents_of(
    tree: Mapping[str, Any],
    host_index: Mapping[str, int],
    base_dir: str | PathLike[str] | None = None,
) -> ProgressContents:
    """Return what the tree of a progress file says.

    Parameters
    ----------
    tree : mapping
        What TOML or JSON say, as dicts, lists, texts and numbers.
    host_index : mapping of str to int
        Index of each host of the problem whose progress it is.
    base_dir : path-like, optional
        What ``bandwidth_csv`` is relative to; by default the working directory.

    Raises
    ------
    ProblemError
        The message names place, rule, value and remedy.

    Examples
    --------
    >>> contents_of(
    ...     {
    ...         "format": "datacollect-progress/1",
    ...         "at_s": 3.0,
    ...         "held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 15}],
    ...     },
    ...     {"S": 0, "D": 1},
    ... ).held
    (Held(host='D', source='S', offset_bytes=0, n_bytes=15),)
    """
    values = PROGRESS.read(tree)
    held = held_of(values["held"], host_index)
    for i, name in enumerate(values["lost_hosts"]):
        require_host(name, f"lost_hosts[{i}]", host_index)
    return ProgressContents(
        at_s=values["at_s"],
        held=held,
        links=_new_links(values, host_index, base_dir),
        lost_hosts=tuple(values["lost_hosts"]),
    )


def tree_of(progress: ProgressContents, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the tree that `contents_of` reads back as the same contents.

    Parameters
    ----------
    progress : ProgressContents
    names : tuple of str
        Names of the problem's hosts.

    Examples
    --------
    >>> tree_of(ProgressContents(3.0, lost_hosts=("S",)), ("S", "D"))
    {'format': 'datacollect-progress/1', 'at_s': 3.0, 'lost_hosts': ['S']}
    """
    tree: dict[str, Any] = {"format": PROGRESS_FORMAT, "at_s": float(progress.at_s)}
    if progress.held:
        tree["held"] = held_trees(progress.held)
    if progress.links is not None:
        if len(progress.links.periods_s) > 1:
            tree["periods_s"] = progress.links.periods_s.tolist()
        tree["links"] = _link_trees(progress.links, names)
    if progress.lost_hosts:
        tree["lost_hosts"] = list(progress.lost_hosts)
    return tree


def _new_links(
    values: dict[str, Any], index: Mapping[str, int], base_dir: str | PathLike[str] | None
) -> NewLinks | None:
    links, name, periods_s = values["links"], values["bandwidth_csv"], values["periods_s"]
    if not links and name is None:
        return None
    table = None
    if name is not None:
        table = read_csv(name, base_dir, index, periods_s)
        given = [column for column in RATE_COLUMNS if column in table.source.header]
        if given:
            raise ProblemError(
                f"bandwidth_csv {table.source.name}, line 1: column {given[0]} belongs in a "
                "problem file: plans of what remains take new bandwidths as constants; remove it"
            )
        if "price_per_gb" not in table.source.header:
            table = replace(table, price_per_gb=np.full(len(table.link_from), math.nan))
    columns = link_columns(links, index, periods_s, table)
    n_links = len(columns["link_from"])
    prices = columns["price_per_gb"]
    return NewLinks(
        link_from=columns["link_from"].astype(np.int64),
        link_to=columns["link_to"].astype(np.int64),
        bandwidth_bytes_per_s=columns["bandwidth_bytes_per_s"],
        price_per_gb=np.zeros(n_links) if prices is None else prices,
        periods_s=np.zeros(1) if periods_s is None else np.array(periods_s, dtype=float),
    )


def _link_trees(links: NewLinks, names: tuple[str, ...]) -> list[dict[str, Any]]:
    bandwidth = links.bandwidth_bytes_per_s
    values: list[Any] = (bandwidth.T if len(bandwidth) > 1 else bandwidth[0]).tolist()
    trees = []
    for tail, head, value, price in zip(
        links.link_from.tolist(),
        links.link_to.tolist(),
        values,
        links.price_per_gb.tolist(),
        strict=True,
    ):
        tree = {"from": names[tail], "to": names[head], "bandwidth_bytes_per_s": value}
        trees.append(tree if math.isnan(price) else tree | {"price_per_gb": price})
    return trees
