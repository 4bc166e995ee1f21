"""A format of exports: a line for each piece that is to be fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.exports.formats import ExportFormat, FormatOption, Written

if TYPE_CHECKING:
    from datacollect.exports.formats import ToWrite

SEPARATORS = {"space": " ", "comma": ","}


class _Lines(ExportFormat):
    def write(self, given: ToWrite) -> Written:
        separator = SEPARATORS[given.options.get("separator", "space")]
        lines = [
            separator.join([job.host, job.request_from, job.piece.path, str(job.piece.n_bytes)])
            for job in given.jobs.jobs
        ]
        return Written({"": "\n".join(lines) + "\n"}, notes=("Lines know no rates.",))


LINES = _Lines(
    name="lines",
    text="a line for each piece",
    may_cut=False,
    is_one_file=True,
    options={"separator": FormatOption(tuple(SEPARATORS), "what stands between words")},
)
