"""Jobs for FTS, CERN's File Transfer Service, which copies whole files at times of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.exports.formats import ExportFormat, FormatOption
from datacollect.exports.fts_checksums import BY_PREFERENCE

if TYPE_CHECKING:
    from datacollect.exports.formats import ToWrite, Written


class _Fts(ExportFormat):
    def write(self, given: ToWrite) -> Written:
        from datacollect.exports.fts_jobs import write_jobs

        return write_jobs(given)


FTS = _Fts(
    name="fts",
    text="jobs for FTS",
    may_cut=False,
    is_timed=False,
    example="root://{host}.example//{path}",
    keeper="the proxy certificate that is delegated to it",
    next_step="submit each job as it is: curl --data-binary @JOB https://SERVER:8446/jobs",
    options={
        "checksum": FormatOption(
            BY_PREFERENCE,
            "what FTS compares; by default the first of these that the manifest knows of a file",
        )
    },
)
