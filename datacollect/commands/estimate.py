"""The command ``datacollect estimate``."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.console import emit_json, note
from datacollect.commands.options import (
    Force,
    How,
    Json,
    Names,
    Output,
    names_by_address,
    require_new,
    require_other_file,
)
from datacollect.commands.reading import write_text
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd


def estimate(
    samples: Annotated[
        str,
        typer.Argument(
            metavar="SAMPLES",
            help="CSV of samples, or iperf3 -J output: a .json file or a folder of them.",
        ),
    ],
    how: Annotated[How, typer.Option("--how", help="Way to estimate.")] = How.ewma,
    a: Annotated[float, typer.Option("--a", help="ewma: weight of the past.")] = 0.9,
    quantile: Annotated[float, typer.Option("--quantile", help="quantile: which one.")] = 0.25,
    name: Names = None,
    output: Output = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn measurements into a CSV of bandwidths, for bandwidth_csv."""
    from datacollect.measurement.estimates import estimate as estimate_bandwidths
    from datacollect.measurement.iperf3 import samples_from_iperf3
    from datacollect.measurement.samples import read_samples

    names = names_by_address(name)
    require_other_file(output, samples)
    require_new(output, force=force)
    if Path(samples).is_dir() or samples.lower().endswith(".json"):
        table = samples_from_iperf3(samples, names)
    elif names is None:
        table = read_samples(samples)
    else:
        raise ProblemError("--name is for iperf3's output; a CSV of samples names its hosts")
    found = estimate_bandwidths(table, how.value, a=a, quantile=quantile)
    if output is not None or not as_json:
        write_text(_bandwidth_csv(found), output)
    if as_json:
        emit_json({"links": found.to_dict("records"), "n_samples": len(table)})
    note(f"{len(found)} links from {len(table)} samples")


def _bandwidth_csv(estimates: pd.DataFrame) -> str:
    """Return estimates as the text of a file for ``bandwidth_csv``."""
    columns = ("from", "to", "bandwidth_bytes_per_s")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(estimates[column].tolist() for column in columns), strict=True))
    return text.getvalue().removesuffix("\n")
