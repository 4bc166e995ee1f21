"""Judge of a simulated pull, whatever has happened to it: from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simulated.disk import files_below

from datacollect.transfer.store.state.state import FileState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulated.dressing import Dressing
    from simulated.sources import Source

    from datacollect.transfer.store.store import Store


class Wrong(AssertionError):
    """An invariant does not hold; says after which seed."""


class Judging:
    """Judges of one pull."""

    seed: int
    folder: Path
    into: Path
    sources: Mapping[str, Source]
    dressing: Dressing

    def _judge_names(self) -> None:
        """What has its final name is whole, whatever has happened."""
        for name, source in self.sources.items():
            for path, data in files_below(self.into / name).items():
                if not source.is_some_version(path, data):
                    raise Wrong(f"seed {self.seed}: {name}/{path} is no version of its file")

    def judge_done(self, opened: Store) -> None:
        """What is said to be done is there, before anything is mended."""
        state = opened.state
        for number, name in state.source_names().items():
            for row in state.files_in(number, FileState.DONE):
                path = Path(self.into, name, row.listed.path)
                wanted = self.sources[name].as_listed(row.listed)
                if not path.is_file() or path.read_bytes() != wanted:
                    raise Wrong(f"seed {self.seed}: {path} is said to be done, and is not there")

    def judge_mended(self, opened: Store) -> None:
        """What is recorded is on disk."""
        self.judge_done(opened)
        state = opened.state
        for number, name in state.source_names().items():
            source = self.sources[name]
            waiting = {row.number: row for row in state.files_in(number, FileState.WAITING)}
            layout = state.layout(number)
            holes = state._rows(
                "SELECT piece FROM pieces WHERE source = ? AND hash = x''", (number,)
            )
            for piece in state.recorded(number):
                for span in layout.spans(piece):
                    if span.file not in waiting:
                        continue
                    begun = self.into / ".datacollect" / "incoming" / str(span.file)
                    if (piece,) in holes:  # need not be written yet
                        whole = begun.read_bytes() if begun.exists() else b""
                        there = whole[span.offset_bytes :][: span.n_bytes].ljust(
                            span.n_bytes, b"\0"
                        )
                    else:
                        there = begun.read_bytes()[span.offset_bytes :][: span.n_bytes]
                    listed = waiting[span.file].listed
                    if len(there) != span.n_bytes or not source.may_have_sent(
                        listed, span.offset_bytes, there
                    ):
                        raise Wrong(f"seed {self.seed}: {name} {piece} is recorded, not on disk")

    def _judge_end(self) -> None:
        """Every file is there, once, as its source has it; nothing else is."""
        self._judge_names()
        for name, source in self.sources.items():
            there = files_below(self.into / name)
            wanted = {path: source.current(path)[1] for path in source.versions}
            if there != wanted:
                differ = sorted(p for p in there | wanted if there.get(p) != wanted.get(p))
                raise Wrong(f"seed {self.seed}: {name}: {differ} are not as at the source")
        outside = {path.name for path in self.folder.iterdir()} - {"into", "kept"}
        names = {path.name for path in self.into.iterdir()} - {".datacollect", *self.sources}
        if outside | names or any((self.into / ".datacollect" / "incoming").iterdir()):
            raise Wrong(f"seed {self.seed}: something else lies about: {outside | names}")
        if unkept := self.dressing.unkept(self.into):
            raise Wrong(f"seed {self.seed}: {unkept} is not kept")
