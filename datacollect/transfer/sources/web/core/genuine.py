"""Authenticity of files: one rule for all responses of servers, at first and at later starts.

No status says that a server sends a page to log in, an error or a pointer instead of a file. What
shows it is that answers for different names are equal, or no longer what they were. Equal files
there are, too: so at a first start a second sign is needed. A verified copy is more than a claim:
whatever makes its successor doubtful keeps it, until a hash or the user decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from datacollect.files.media import (
    DOCUMENTS,
    POINTER_BYTES,
    ContentKind,
    error_in,
    is_promised,
    looks_of,
    may_be_document,
    may_be_text,
)
from datacollect.files.units import counted
from datacollect.transfer.protocol.source import BEGIN_BYTES
from datacollect.transfer.sources.web.core.messages import Worth
from datacollect.transfer.sources.web.core.refusals import LET_IN, login_page, quoted
from datacollect.transfer.sources.web.core.urls import name_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from datacollect.transfer.protocol.source import Copy
    from datacollect.transfer.sources.web.core.messages import FileAnswer
    from datacollect.transfer.sources.web.core.urls import Target

_Key: TypeAlias = tuple[object, ...]

# Pages for different names are the same where they are at one address or have one ETag; equal
# lengths alone are less, and need three.
_NEEDED = {"landed": 2, "etag": 2, "length": 3}
# HTML begins so, or with blanks, or with the mark of its encoding; what is not known may be it.
_PAGE_BEGINS = (b"", b"<", b" ", b"\t", b"\r", b"\n", b"\xef")
# Of files that may be equal so many are looked at; all of them only where two of these are.
SAMPLE = 8
# A shorter name may be in a text by chance.
LEAST_NAME = 3
_BY_MANIFEST = "give their bytes and sha256 in a manifest"
_OVERWRITE = (
    "if what is there now is the right file, start with --overwrite, or give its bytes and sha256 "
    "in a manifest"
)


def is_page(path: str, answer: FileAnswer) -> bool:
    """Return whether an answer is HTML, for a file that is not called so."""
    is_html = answer.media is ContentKind.HTML and answer.begins in _PAGE_BEGINS
    return is_html and not is_promised(path, ContentKind.HTML)


class Claim(NamedTuple):
    """Claim of a server on what a file is; `copy`: what is there, verified, and is another."""

    path: str
    target: Target
    answer: FileAnswer
    copy: Copy | None = None


def is_page_elsewhere(claim: Claim) -> bool:
    """Return whether a redirect has led to a page of another name than was asked for."""
    landed = claim.answer.landed
    is_other = landed is not None and name_in(landed) != name_in(claim.target)
    return is_other and is_page(claim.path, claim.answer)


class Claims:
    """Claims for the files of one server, judged together. Not for several threads at a time.

    Parameters
    ----------
    targets : collection of Target
        Where the collection has its files: what a redirect leads to there is a file, no page.
    """

    def __init__(self, targets: Collection[Target] = ()) -> None:
        self._own = frozenset(targets)
        self._claims: dict[str, Claim] = {}
        # The first bytes of files that were looked at; None: they did not come.
        self._begins: dict[str, bytes | None] = {}
        self._found: _Together | None = None

    def add(self, claim: Claim) -> bool:
        """Take a claim in.

        Returns
        -------
        bool
            Whether only all claims together show what it is worth.
        """
        if not self._is_doubtful(claim):
            return False
        self._claims[claim.path] = claim
        self._found = None
        return True

    def _is_doubtful(self, claim: Claim) -> bool:
        answer = claim.answer
        if answer.worth is Worth.REFUSED:
            return is_page(claim.path, answer)
        if answer.worth is not Worth.GOOD:
            return False
        return (
            claim.copy is not None
            or is_page(claim.path, answer)
            or self._address(claim) is not None
            or (answer.n_bytes > 0 and self._may_be_document(claim))
        )

    def held(self) -> list[str]:
        """Return the files that are to be judged together."""
        return list(self._claims)

    @property
    def any_copies(self) -> bool:
        """Return whether a claim contradicts a verified copy."""
        return any(claim.copy is not None for claim in self._claims.values())

    # Looking ----------------------------------------------------------------------------------

    def to_look_at(self) -> list[str]:
        """Return files of which the first bytes are needed by now; none: all can be judged."""
        groups: dict[_Key, list[Claim]] = defaultdict(list)
        chosen: dict[str, None] = {}
        for claim in self._claims.values():
            if claim.answer.worth is not Worth.GOOD or claim.answer.n_bytes == 0:
                continue
            if claim.copy is not None and self._may_be_document(claim):
                chosen[claim.path] = None
            for key in self._likenesses(claim):
                groups[key].append(claim)
        for key, alike in groups.items():
            if len(alike) > 1 or key[0] == "pointer":
                chosen |= dict.fromkeys(claim.path for claim in self._sample(alike))
        return [path for path in chosen if path not in self._begins]

    def _may_be_document(self, claim: Claim) -> bool:
        answer = claim.answer
        if answer.media in DOCUMENTS:
            return True
        # Errors in plain text are short; a new version is looked at whatever its length.
        if claim.copy is not None or answer.n_bytes <= BEGIN_BYTES:
            return may_be_text(answer.begins)
        is_promised_one = any(is_promised(claim.path, kind) for kind in DOCUMENTS)
        return may_be_document(answer.begins) and not is_promised_one

    def _likenesses(self, claim: Claim) -> Iterable[_Key]:
        """Yield what files have in common that may be equal."""
        answer = claim.answer
        if claim.copy is not None or self._may_be_document(claim):
            # Many small texts are of one size: where none is to be replaced, ETags tell them apart.
            etag = None if claim.copy is not None else answer.version.etag
            yield "size", answer.n_bytes, answer.begins, (etag or "").removeprefix("W/")
            yield "kind", answer.media, answer.begins
        if (address := self._address(claim)) is not None:
            yield "address", address, answer.n_bytes
        if answer.begins in (b"", b"v") and answer.n_bytes < POINTER_BYTES:
            yield ("pointer",)

    def _sample(self, alike: Sequence[Claim]) -> Sequence[Claim]:
        first = alike[:SAMPLE]
        known = [content for c in first if (content := self._content(c)) is not None]
        return alike if len(set(known)) < len(known) else first

    def looked(self, path: str, begins: bytes | None) -> None:
        """Take the first bytes of a file in; None: they cannot be had."""
        self._begins[path] = begins
        self._found = None

    # Judging ----------------------------------------------------------------------------------

    def why(self, path: str) -> str | None:
        """Return why a file is not taken for what it is to be; None where it is."""
        claim, found = self._claims[path], self._together()
        if (page := self._why_page(claim, found)) is not None:
            return page
        key = self._content(claim)
        if key is not None and found.names[key] > 1 and key in found.signs:
            sign = found.signs[key]
            return (
                f"not a file? The server has one and the same {sign.what}{sign.where} for "
                f"{found.names[key]} files{sign.says}; {sign.remedy}. If these are the files, "
                f"{_BY_MANIFEST}"
            )
        if claim.copy is None:
            return None
        why = self._why_not_instead(claim, claim.copy, found)
        return None if why is None else f"{why}; {_OVERWRITE}"

    def pointers(self) -> list[str]:
        """Return files that are pointers, and taken as such, of those that were looked at."""
        found = [path for path in self._claims if self._looks(path) is ContentKind.POINTER]
        return [path for path in found if self.why(path) is None]

    def _why_page(self, claim: Claim, found: _Together) -> str | None:
        for key in _page_keys(claim):
            n = found.pages[key]
            if n >= _NEEDED[str(key[0])]:
                where = f" at {key[1]}" if key[0] == "landed" else ""
                return (
                    f"a login page? The server has one and the same page{where} for {n} files; "
                    f"{LET_IN}. If these are the files, {_BY_MANIFEST}"
                )
        if claim.answer.landed is not None and is_page_elsewhere(claim):
            return login_page(claim.answer.landed)
        return None

    def _why_not_instead(self, claim: Claim, copy: Copy, found: _Together) -> str | None:
        """Return why a claim does not replace a verified copy."""
        answer, key = claim.answer, self._content(claim)
        if len(self._own) == 1 and not answer.n_bytes and copy.n_bytes:
            # It has no neighbours which could show that the server answers everything by nothing.
            return f"it is empty now, and had {counted(copy.n_bytes, 'byte')} when it came"
        begins = self._begins.get(claim.path) or b""
        if key is not None and len(found.copies[key]) > 1:
            n_bytes, n_files = counted(answer.n_bytes, "byte"), len(found.copies[key])
            return f"the server has the same {n_bytes} for {n_files} files that differed"
        was, now = looks_of(copy.begins), self._looks(claim.path) or answer.media
        says = quoted(error_in(begins, answer.n_bytes), claim.target)
        is_new = now is not was and now in (*DOCUMENTS, ContentKind.POINTER)
        is_text = now is ContentKind.TEXT and was is ContentKind.DATA
        if now is not None and (is_text or (is_new and not is_promised(claim.path, now))):
            question = ": a login page?" if now is ContentKind.HTML and not says else ""
            return f"it is {now.value} now{says}, and was {was.value} when it came{question}"
        if says and error_in(copy.begins, copy.n_bytes) is None:
            return f"it now mentions an error{says}"
        if _has_shrunk(claim) and found.n_shrunk > 1 and 2 * found.n_shrunk >= found.n_changed:
            return (
                f"{found.n_shrunk} of the {counted(found.n_changed, 'file')} that have changed "
                f"have shrunk to less than half; this one has {counted(answer.n_bytes, 'byte')} "
                f"now, and had {copy.n_bytes}"
            )
        return None

    def _together(self) -> _Together:
        if self._found is not None:
            return self._found
        self._found = found = _Together()
        for claim in self._claims.values():
            found.count(claim, self._content(claim), self._address(claim))
        paths = [path for path in self._claims if self._looks(path) is ContentKind.POINTER]
        is_only = len({self._begins[path] for path in paths}) == 1
        for claim in self._claims.values():
            key = self._content(claim)
            if key is None or found.names[key] < 2 or key in found.signs:
                continue
            if (sign := self._sign(claim, found, is_only=is_only)) is not None:
                found.signs[key] = sign
        return found

    def _content(self, claim: Claim) -> _Key | None:
        """Return what is equal for files with equal bytes; None where that is not known."""
        answer = claim.answer
        begins = self._begins.get(claim.path) if answer.n_bytes else b""
        if answer.worth is not Worth.GOOD or begins is None:
            return None
        if len(begins) < answer.n_bytes:  # a part was looked at: an ETag must not say otherwise
            return answer.n_bytes, begins, answer.version.strong_etag
        # Errors often say the name that was asked for, and are the same but for that.
        own = (claim.path.encode(errors="surrogatepass"), name_in(claim.target).encode())
        for name in sorted(own, key=len, reverse=True):
            begins = begins.replace(name, b"*") if len(name) >= LEAST_NAME else begins
        return len(begins), begins, None

    def _sign(self, claim: Claim, found: _Together, *, is_only: bool) -> _Sign | None:
        """Return what says that equal answers are no files, at a first start, too."""
        begins, n_bytes = self._begins.get(claim.path) or b"", claim.answer.n_bytes
        looks = self._looks(claim.path) or ContentKind.EMPTY
        address = self._address(claim)
        where = "" if claim.answer.landed is None else f" at {claim.answer.landed.shown}"
        says = quoted(error_in(begins, n_bytes), claim.target)
        if looks is ContentKind.POINTER:
            return _Sign(looks.value.removeprefix("a "), where, "", _FROM_LFS) if is_only else None
        is_own = is_promised(claim.path, looks)
        # A page may well speak of logging in where pages are what is wanted.
        if (looks in DOCUMENTS and not is_own) or (
            says and not (is_own and looks is ContentKind.HTML)
        ):
            return _Sign(looks.value, where, says, LET_IN)
        if address is not None and found.addresses[address] > 1:
            return _Sign("answer", where, "", LET_IN)
        return None

    def _looks(self, path: str) -> ContentKind | None:
        begins = self._begins.get(path)
        return None if begins is None else looks_of(begins)

    def _address(self, claim: Claim) -> _Key | None:
        """Return where redirects have led to, unless the collection itself has a file there."""
        landed = claim.answer.landed
        return None if landed is None or landed in self._own else (*landed.origin, landed.shown)


_FROM_LFS = "the data lie in its LFS store: run `git lfs pull` where the repository is"


class _Sign(NamedTuple):
    """Sign that equal answers are no files: where, what they say, and what helps."""

    what: str
    where: str
    says: str
    remedy: str


class _Together:
    """Common features of claims.

    Attributes
    ----------
    names : Counter
        How many files have the same bytes.
    copies : dict
        The different verified copies that the same bytes are to replace.
    signs : dict of _Sign
        Of equal bytes, what says that they are no files.
    pages : Counter
        How many pages have an address, an ETag or a length.
    addresses : Counter
        How many files redirects have led to an address.
    n_changed, n_shrunk : int
        Files of which a verified copy is another one, and more than twice as long.
    """

    def __init__(self) -> None:
        self.names: Counter[_Key] = Counter()
        self.copies: dict[_Key, set[Copy]] = defaultdict(set)
        self.signs: dict[_Key, _Sign] = {}
        self.pages: Counter[_Key] = Counter()
        self.addresses: Counter[_Key] = Counter()
        self.n_changed = self.n_shrunk = 0

    def count(self, claim: Claim, content: _Key | None, address: _Key | None) -> None:
        """Count a claim, by its bytes and by where redirects have led to."""
        self.pages.update(_page_keys(claim))
        if address is not None:
            self.addresses[address] += 1
        if content is not None:
            self.names[content] += 1
        if claim.copy is not None and claim.answer.worth is Worth.GOOD:
            self.n_changed += 1
            self.n_shrunk += _has_shrunk(claim)
            if content is not None:
                self.copies[content].add(claim.copy)


def _has_shrunk(claim: Claim) -> bool:
    return claim.copy is not None and 2 * claim.answer.n_bytes < claim.copy.n_bytes


def _page_keys(claim: Claim) -> list[_Key]:
    """Return what is the same for the same page."""
    answer = claim.answer
    if not is_page(claim.path, answer):
        return []
    keys: list[_Key] = []
    if answer.landed is not None:
        keys.append(("landed", answer.landed.shown, *answer.landed.origin))
    if (etag := answer.version.etag) is not None:
        keys.append(("etag", etag.removeprefix("W/")))
    if answer.n_bytes:
        keys.append(("length", answer.n_bytes))
    return keys
