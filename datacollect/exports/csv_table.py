"""A table of all that is to be fetched, for people and for programs of their own."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from datacollect.exports.formats import ExportFormat, Written

if TYPE_CHECKING:
    from datacollect.exports.formats import ToWrite
    from datacollect.files.clock import Clock

COLUMNS = (
    *("host", "request_from", "source", "path", "offset_bytes", "bytes", "file_bytes", "start_s"),
    *("rate_bytes_per_s", "finish_s", "at_once", "forward_to", "sha256", "address"),
)
# Where the problem has a clock.
CLOCK_COLUMNS = ("starts_at", "finishes_at")


class _CsvTable(ExportFormat):
    def write(self, given: ToWrite) -> Written:
        clock = given.problem.clock
        has_addresses = given.templates.own or given.templates.relayed
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS if clock is None else COLUMNS + CLOCK_COLUMNS)
        for job, end_s in zip(given.jobs.jobs, given.finish_s, strict=True):
            piece = job.piece
            where = ""
            if has_addresses:
                where = given.address(job.request_from, piece.source, piece.path)
            writer.writerow(
                [
                    *(job.host, job.request_from, piece.source, piece.path, piece.offset_bytes),
                    *(piece.n_bytes, piece.file_bytes, job.start_s, job.rate_bytes_per_s, end_s),
                    *(job.lane, job.forward_to or "", piece.sha256, where),
                    *([] if clock is None else [shown(clock, job.start_s), shown(clock, end_s)]),
                ]
            )
        return Written({"": text.getvalue()})


def shown(clock: Clock, at_s: float) -> str:
    """Write an instant as ISO 8601; nothing where it never comes."""
    return clock.iso(at_s) if math.isfinite(at_s) else ""


CSV = _CsvTable(
    name="csv",
    text="a table",
    is_one_file=True,
    refused={"checksum": "a table has the SHA-256 of each file"},
)
