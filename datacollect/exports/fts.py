"""Jobs for FTS, CERN's File Transfer Service, which has storage systems copy files to each other.

Schema: https://gitlab.cern.ch/fts/fts-rest-flask, ``fts3rest/lib/api/submit_schema.py`` (2024),
served by every FTS at ``/api-docs/schema/submit``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.exports.jobs import Job

# FTS refuses much larger jobs; a job is one row of its overview.
FILES_PER_JOB = 1000


def fts_jobs(
    jobs: Sequence[Job], address: Callable[[str, str, str], str], n_streams: int
) -> list[dict[str, Any]]:
    """Return the trees of job files, in the order in which they are to be submitted.

    Files that go straight share jobs; each that passes relays is a job of its own, a chain that
    FTS calls multihop.
    """
    chains: list[list[Job]] = []
    chain_of: dict[int, list[Job]] = {}
    for i, job in enumerate(jobs):
        if job.after is None:
            chain_of[i] = [job]
            chains.append(chain_of[i])
        else:
            chain_of[i] = chain_of[job.after]
            chain_of[i].append(job)
    chains.sort(key=lambda chain: chain[0].start_s)
    straight = [chain[0] for chain in chains if len(chain) == 1]
    trees = [
        _tree(straight[k : k + FILES_PER_JOB], address, n_streams, is_chain=False)
        for k in range(0, len(straight), FILES_PER_JOB)
    ]
    trees += [_tree(chain, address, n_streams, is_chain=True) for chain in chains if len(chain) > 1]
    return trees


def _tree(
    jobs: Sequence[Job],
    address: Callable[[str, str, str], str],
    n_streams: int,
    *,
    is_chain: bool,
) -> dict[str, Any]:
    params: dict[str, Any] = {"overwrite": False, "retry": 3, "multihop": is_chain}
    params["verify_checksum"] = any(job.piece.sha256 for job in jobs)
    if n_streams > 1:
        params["nostreams"] = n_streams
    return {"files": [_file(job, address) for job in jobs], "params": params}


def _file(job: Job, address: Callable[[str, str, str], str]) -> dict[str, Any]:
    piece = job.piece
    tree: dict[str, Any] = {
        "sources": [address(job.request_from, piece.source, piece.path)],
        "destinations": [address(job.host, piece.source, piece.path)],
        "filesize": piece.n_bytes,
        "metadata": {"source": piece.source, "from": job.request_from, "to": job.host},
    }
    if piece.sha256:
        tree["checksum"] = f"SHA256:{piece.sha256}"
    return tree
