"""Options of methods: each is one field, which says all that places need to know of it.

The command line, scenarios, pulls and comparisons take them from there: what it is called, what
its values may be, what it means, where it is not valid and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.files.kinds import Kind

# Where a method can be asked for something: `plan` and `compare` on the command line, [method] of
# scenario files, [planning] of collection files.
Place: TypeAlias = Literal["plan", "compare", "scenario", "pull"]


@dataclass(frozen=True)
class Option:
    """Option of methods, the same wherever it is given.

    Attributes
    ----------
    kind : Kind
        What its values may be.
    text : str
        Its meaning, for help and for schemas; names of other options in braces.
    recorded : str
        Under which name a schedule records it, a dot for what lies within; empty: it does not.
    not_in : mapping of str to str
        The places in which it is not valid, and why.
    excludes : tuple of str
        Options that make no sense beside it.
    needs : tuple of (str, str), optional
        An option without which it makes none, and what that one says.
    lacking : str
        What a method is like for which it changes nothing; empty: to give it is a mistake then.

    Examples
    --------
    >>> from datacollect.files.kinds import Whole
    >>> Option(Whole(), "{at_a_time} sources.").described(flag)
    '--at-a-time sources.'
    """

    kind: Kind
    text: str
    recorded: str = ""
    not_in: Mapping[Place, str] = field(default_factory=dict)
    excludes: tuple[str, ...] = ()
    needs: tuple[str, str] | None = None
    lacking: str = ""

    def described(self, spelled: Callable[[str], str] = str) -> str:
        """Return its meaning, names of other options as a place spells them."""
        return re.sub(r"\{(\w+)\}", lambda found: spelled(found[1]), self.text)


class MethodOptions:
    """Base of the frozen classes that hold what a method is asked for; all fields by `option`."""

    method: ClassVar[str]


def option(about: Option, default: Any = None) -> Any:
    """Return a field of a class of options.

    Parameters
    ----------
    about : Option
    default : object
        What the method does where the option is not given.
    """
    return field(default=default, metadata={"option": about})


def options_of(kind: type[MethodOptions]) -> dict[str, Option]:
    """Return the options of a class by their names, in order."""
    return {each.name: each.metadata["option"] for each in fields(kind)}  # type: ignore[arg-type]


def flag(name: str) -> str:
    """Return what an option is called on the command line, which leaves seconds unsaid.

    >>> flag("time_limit_s"), flag("at_a_time")
    ('--time-limit', '--at-a-time')
    """
    return f"--{name.removesuffix('_s').replace('_', '-')}"
