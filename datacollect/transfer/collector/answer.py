"""What a pull says in the end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datacollect.transfer.collector.state import Missing


@dataclass(frozen=True)
class RouteUse:
    """What a route has brought.

    Attributes
    ----------
    source : str
    hosts : tuple of str
        From the source to the destination.
    n_bytes : int
        New bytes, of this start.
    connections : int
        Most chains over it at a time.
    """

    source: str
    hosts: tuple[str, ...]
    n_bytes: int
    connections: int


_UNSURE = "changes while they came cannot be excluded"


@dataclass(frozen=True)
class Assurance:
    """What is known of the files that another server has sent; agents hash all they send.

    Attributes
    ----------
    source : str
    hashed_files : int
        Whose SHA-256 is the one that the manifest says.
    tagged_files : int
        Of which no hash is known: all parts are of one version, by a strong ETag.
    unsure_files : int
        Of which parts may be of several versions: there is neither.
    is_protected : bool
        Whether they came by TLS.
    """

    source: str
    hashed_files: int
    tagged_files: int
    unsure_files: int
    is_protected: bool

    @property
    def text(self) -> str:
        """What to know of them, in words.

        >>> Assurance("W", 2, 0, 0, True).text
        '2 files have the SHA-256 of the manifest'
        """
        words = [
            f"{n} {'file has' if n == 1 else 'files have'} {what}"
            for n, what in (
                (self.hashed_files, "the SHA-256 of the manifest"),
                (self.tagged_files, "no known hash, and one strong ETag throughout"),
                (self.unsure_files, f"no known hash and no strong ETag: {_UNSURE}"),
            )
            if n
        ]
        if not self.is_protected:
            words.append("without TLS: anybody on the way could read and change what came")
        return "; ".join(words)


@dataclass(frozen=True)
class Pulled:
    """What came of a pull.

    Attributes
    ----------
    complete : bool
        Whether everything that was to be collected is there, verified.
    n_bytes, n_files : int
        What is there, verified, under its final name; of all starts.
    predicted_makespan_s : float or None
        By the first plan on known bandwidths, from this start; None where there was none.
    makespan_s : float
        From this start to the last byte recorded.
    method : str
    routes : tuple of RouteUse
    refetched : dict of str to int
        Bytes that came in vain, by the reason.
    missing : tuple of Missing
        What could not be had, and why.
    assurances : tuple of Assurance
        What was verified of files of other servers, for each of them that has sent any.
    """

    complete: bool
    n_bytes: int
    n_files: int
    predicted_makespan_s: float | None
    makespan_s: float
    method: str
    routes: tuple[RouteUse, ...]
    refetched: dict[str, int]
    missing: tuple[Missing, ...]
    assurances: tuple[Assurance, ...] = ()

    @property
    def refetched_bytes(self) -> int:
        """All bytes that came in vain."""
        return sum(self.refetched.values())

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, as ``pull --json`` prints it.

        Returns
        -------
        dict
            ``bytes`` and ``files`` for `n_bytes` and `n_files`, otherwise the attributes' names.

        Examples
        --------
        >>> found = Pulled(True, 5, 1, None, 2.0, "direct", (), {"changed": 3}, ())
        >>> found.to_dict()["refetched_bytes"]
        3
        """
        return {
            "complete": self.complete,
            "bytes": self.n_bytes,
            "files": self.n_files,
            "predicted_makespan_s": self.predicted_makespan_s,
            "makespan_s": self.makespan_s,
            "method": self.method,
            "routes": [
                {
                    "source": use.source,
                    "hosts": list(use.hosts),
                    "bytes": use.n_bytes,
                    "connections": use.connections,
                }
                for use in self.routes
            ],
            "refetched_bytes": self.refetched_bytes,
            "refetched": dict(self.refetched),
            "missing": [entry._asdict() for entry in self.missing],
            "assurances": [asdict(each) | {"text": each.text} for each in self.assurances],
        }
