"""Forms of a public key: what it is written as for a purpose beside the usual one.

Another package brings a form as an entry point of the group ``datacollect.key_forms``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.registry import Registry
from datacollect.wings import KEY_FORMS as OWN

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class KeyForm:
    """A form of a key.

    Attributes
    ----------
    name : str
        Of its purpose.
    field : str
        What JSON calls the text.
    text : callable
        Returns it; gets the name of who has the key, and the public key.
    """

    name: str
    field: str
    text: Callable[[str, str], str]


KEY_FORMS = Registry("form of a key", "datacollect.key_forms", KeyForm, OWN)
