"""Progress files: what lies where, new estimates and lost hosts, for planning anew."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.documents import document_name, read_tree
from datacollect.errors import ProblemError
from datacollect.fields import HELD, LINK, NAME
from datacollect.files import link_columns, read_csv, require_host
from datacollect.hosts import Held
from datacollect.kinds import Field, ListOf, Number, Rows, Starts, Table, Text
from datacollect.progress import NewLinks, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.problem import Problem

PROGRESS_FORMAT = "datacollect-progress/1"

NEW_LINK = Table(
    "the link",
    "A link's new estimate.",
    (
        *(field for field in LINK.fields if field.name != "price_per_gb"),
        Field(
            "price_per_gb",
            Number("currency per 10^9 bytes"),
            "Price per 10^9 bytes, in any currency; if absent the problem's.",
            default=math.nan,
        ),
    ),
)

PROGRESS = Table(
    "the progress",
    "What lies where at an instant, and what has changed since the plan was made.",
    (
        Field("format", Text((PROGRESS_FORMAT,)), "Format and its version.", required=True),
        Field(
            "at_s",
            Number("seconds", remedy="count from the start of the plan"),
            "The instant, in seconds from the start of the plan.",
            required=True,
        ),
        Field(
            "held",
            Rows(HELD),
            "All that lies elsewhere than at its source; at the destination it is collected.",
            default=(),
        ),
        Field(
            "links",
            Rows(NEW_LINK),
            "New estimates of links; they replace the problem's, or add links.",
            default=(),
        ),
        Field(
            "bandwidth_csv",
            Text(),
            "CSV file with new estimates, besides or instead of the list of links; relative to "
            "this file.",
        ),
        Field(
            "periods_s",
            Starts(),
            "Starts of the new estimates' periods, in seconds from at_s, the first 0.",
        ),
        Field(
            "lost_hosts",
            ListOf(NAME),
            "Hosts that do not answer any more.",
            default=(),
        ),
    ),
)


def read_progress(path: str | PathLike[str], problem: Problem) -> Progress:
    r"""Read a progress file.

    Parameters
    ----------
    path : path-like
        TOML or JSON by the suffix; ``-`` reads either from standard input. What ``bandwidth_csv``
        names is relative to the file.
    problem : Problem
        Whose progress it is.

    Raises
    ------
    ProblemError
        The message names file, place, rule, value and remedy.

    Examples
    --------
    >>> import tempfile
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "progress.toml")
    ...     _ = path.write_text('format = "datacollect-progress/1"\nat_s = 3\n')
    ...     read_progress(path, problem).at_s
    3.0
    """
    tree = read_tree(path)
    folder = Path() if str(path) == "-" else Path(path).parent
    try:
        return progress_from_tree(tree, problem, folder)
    except ProblemError as error:
        raise ProblemError(f"{document_name(path)}: {error}") from None


def progress_from_tree(
    tree: Mapping[str, Any], problem: Problem, base_dir: str | PathLike[str] | None = None
) -> Progress:
    """Build the progress from the tree of a progress file.

    Parameters
    ----------
    tree : mapping
        What TOML or JSON say, as dicts, lists, texts and numbers.
    problem : Problem
        Whose progress it is.
    base_dir : path-like, optional
        What ``bandwidth_csv`` is relative to; by default the working directory.

    Raises
    ------
    ProblemError
        The message names place, rule, value and remedy.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> progress_from_tree(
    ...     {
    ...         "format": "datacollect-progress/1",
    ...         "at_s": 3.0,
    ...         "held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 15}],
    ...     },
    ...     problem,
    ... ).held
    (Held(host='D', source='S', offset_bytes=0, n_bytes=15),)
    """
    _reject_other_files(tree)
    values = PROGRESS.read(tree, "")
    index = problem.host_index
    for i, entry in enumerate(values["held"]):
        for key in ("host", "source"):
            require_host(entry[key], f"held[{i}].{key}", index)
    for i, name in enumerate(values["lost_hosts"]):
        require_host(name, f"lost_hosts[{i}]", index)
    return Progress(
        at_s=values["at_s"],
        held=tuple(
            Held(h["host"], h["source"], h["offset_bytes"], h["bytes"]) for h in values["held"]
        ),
        links=_new_links(values, index, base_dir),
        lost_hosts=tuple(values["lost_hosts"]),
    )


def progress_to_tree(progress: Progress, problem: Problem) -> dict[str, Any]:
    """Return the tree that `progress_from_tree` reads back as equal progress.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> progress_to_tree(Progress(3.0, lost_hosts=("S",)), problem)
    {'format': 'datacollect-progress/1', 'at_s': 3.0, 'lost_hosts': ['S']}
    """
    tree: dict[str, Any] = {"format": PROGRESS_FORMAT, "at_s": float(progress.at_s)}
    if progress.held:
        tree["held"] = [
            {
                "host": h.host,
                "source": h.source,
                "offset_bytes": int(h.offset_bytes),
                "bytes": int(h.n_bytes),
            }
            for h in progress.held
        ]
    if progress.links is not None:
        if len(progress.links.periods_s) > 1:
            tree["periods_s"] = progress.links.periods_s.tolist()
        tree["links"] = _link_trees(progress.links, problem.names)
    if progress.lost_hosts:
        tree["lost_hosts"] = list(progress.lost_hosts)
    return tree


def _reject_other_files(tree: Any) -> None:
    # Before unknown keys: who mixes up files is to read that.
    if not isinstance(tree, dict):
        return
    what = "a schedule" if "transfers" in tree else "a problem" if "hosts" in tree else None
    if what is not None:
        raise ProblemError(
            f'format must be "{PROGRESS_FORMAT}": this is {what}; name the problem first, then '
            "the schedule, then the progress"
        )


def _new_links(
    values: dict[str, Any], index: Mapping[str, int], base_dir: str | PathLike[str] | None
) -> NewLinks | None:
    links, name, periods_s = values["links"], values["bandwidth_csv"], values["periods_s"]
    if not links and name is None:
        return None
    table = None
    if name is not None:
        table = read_csv(name, base_dir, index, periods_s)
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
