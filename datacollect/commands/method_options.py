"""Options of methods on the command line, made from what they are everywhere."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args

import typer

from datacollect.commands.console import note
from datacollect.commands.conversion import TIME, number_in
from datacollect.commands.instants import is_instant
from datacollect.commands.named_entries import note_fault
from datacollect.commands.options import not_negative, part, positive, split_names
from datacollect.errors import ProblemError
from datacollect.files.choices import Method, RunMethod
from datacollect.files.kinds import Choice, Flag, Instant, ListOf, Number, Share, Whole
from datacollect.files.spoken_times import UNDERSTOOD
from datacollect.methods.choice import METHODS, own_methods
from datacollect.methods.options.option import flag
from datacollect.methods.places import options_in, refused_in, require_fit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.methods.options.option import MethodOptions, Option, Place
    from datacollect.problem.problem import Problem


# Commands whose --method also names methods of other packages, and our own that each takes.
NAMING = {"plan": get_args(Method), "pull": get_args(RunMethod), "simulate": get_args(RunMethod)}


def brought_methods(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the methods of other packages that a command's line names: all, if it asks for help.

    They are looked for only then.

    >>> brought_methods(["plan", "upload.toml", "--method", "direct"])
    ()
    """
    if not arguments or arguments[0] not in NAMING:
        return ()
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    named = {after for option, after in pairs if option == "--method"}
    named |= {each.removeprefix("--method=") for each in arguments if each.startswith("--method=")}
    asks = not {"-h", "--help"}.isdisjoint(arguments)
    if not asks and named <= METHODS.own.keys():
        return ()
    others = METHODS.usable_names(note_fault) if asks else METHODS.names()
    others = tuple(name for name in others if name not in METHODS.own)
    return tuple(others if asks else named.intersection(others))


def method_names(command: str, brought: Sequence[str] = ()) -> str:
    """Return the names of methods as help writes them."""
    return f"<{'|'.join((*NAMING[command], *brought))}>"


Command = TypeVar("Command", bound="Callable[..., Any]")


def _named(command: str) -> dict[str, Any]:
    """Return what --method of a command is."""

    def listed() -> list[str]:
        return [*NAMING[command], *(name for name in METHODS.names() if name not in METHODS.own)]

    def known(name: str | None) -> str | None:
        if name is not None and name not in NAMING[command] and name not in listed():
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, listed()))}.")
        return name

    return {"metavar": method_names(command), "callback": known, "autocompletion": listed}


if TYPE_CHECKING:
    PlanMethod: TypeAlias = Method
    PullMethod: TypeAlias = RunMethod
    SimulateMethod: TypeAlias = RunMethod | None
else:
    PlanMethod = Annotated[str, typer.Option("--method", help="Planning method.", **_named("plan"))]
    PullMethod = Annotated[
        str,
        typer.Option(
            "--method",
            help="How routes and connections are chosen.",
            **_named("pull"),
        ),
    ]
    SimulateMethod = Annotated[
        str | None,
        typer.Option("--method", help="Method, instead of the scenario's.", **_named("simulate")),
    ]


def taking(place: Place, after: str) -> Callable[[Command], Command]:
    """Return what marks a command whose ``**asked`` are options of methods.

    Parameters
    ----------
    place : str
    after : str
        The parameter behind which help lists them.
    """

    def marked(command: Command) -> Command:
        command.__dict__["takes"] = place, after
        return command

    return marked


def with_options(command: Callable[..., Any], brought: Sequence[str]) -> Callable[..., Any]:
    """Return a command with the options of methods, if it takes any.

    Parameters
    ----------
    command : callable
    brought : sequence of str
        Methods of other packages whose options it has, too.
    """
    if "takes" not in vars(command):
        return command
    place, after = vars(command)["takes"]

    @wraps(command)
    def run(*given: Any, **asked: Any) -> Any:
        return command(*given, **asked)

    signature = inspect.signature(command, eval_str=True)
    kept = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    at = 1 + [each.name for each in kept].index(after)
    options = [_parameter(*each) for each in options_in(place, brought).items()]
    parameters = [*kept[:at], *options, *kept[at:]]
    # typer reads both.
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def fitting(method: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of a command, by name, that were given.

    Raises
    ------
    ProblemError
        One means nothing to the method, or beside another one.
    """
    given = {name: value for name, value in asked.items() if value != default_of(name)}
    for text in require_fit(METHODS.get(method), given, "plan", flag):
        note(f"note: {text}")
    return given


def options_asked(method: str, given: Mapping[str, Any], problem: Problem) -> MethodOptions:
    """Return what a method is asked for by the options that were given."""
    spec = METHODS.get(method)
    own = {name: value for name, value in given.items() if name in spec.takes}
    values = {name: _value(spec.takes[name], name, value, problem) for name, value in own.items()}
    return spec.asked(values)


# What says for a command how a method plans, where that is a file; and what the file calls it.
_FILES: dict[str, tuple[Place, str]] = {
    "pull": ("pull", "the collection file says that, as planning."),
    "simulate": ("scenario", "the scenario says that, as method."),
}


def why_not(command: str, option: str) -> str:
    """Return why a command has no such option, though methods do; empty: they do not either.

    >>> why_not("pull", "--prefer")
    'the collection file says that, as planning.prefer'
    """
    if command not in ("plan", "compare", *_FILES):
        return ""
    place, said = _FILES.get(command, (cast("Place", command), ""))
    found = {flag(name): f"{said}{name}" for name in options_in(place)} if said else {}
    found |= {flag(name): why for name, why in refused_in(place).items()}
    return found.get(option, "")


def _value(about: Option, name: str, value: Any, problem: Problem) -> Any:
    if isinstance(about.kind, ListOf):
        return split_names(value)
    if isinstance(about.kind, Instant):
        from datacollect.commands.instants import seconds_until

        return seconds_until(value, problem, flag(name))
    return value


def default_of(name: str) -> Any:
    """Return what an option is where it is not given: None, if one method alone has it."""
    specs = [spec for spec in own_methods() if spec.plan is not None and name in spec.takes]
    if len(specs) < 2:
        return None
    return next(each.default for each in fields(specs[0].options) if each.name == name)  # type: ignore[arg-type]


def _parameter(name: str, about: Option) -> inspect.Parameter:
    default = default_of(name)
    kind, rules = _typed(about)
    spoken = f" As a clock shows it: {UNDERSTOOD}." if isinstance(about.kind, Instant) else ""
    declared = typer.Option(flag(name), help=f"{about.described(flag)}{spoken}", **rules)
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=Annotated[kind if default is not None else kind | None, declared],
    )


def _typed(about: Option) -> tuple[Any, dict[str, Any]]:
    """Return the type of an option's values, and what typer is told of them."""
    match about.kind:
        case Choice(words):
            return Literal.__getitem__(words), {}
        case Whole(minimum=minimum):
            return int, {"metavar": "N", "min": minimum}
        case Share():
            return float, {"metavar": "PART", "callback": part}
        case Number(of, positive=is_positive):
            callback = positive if is_positive else not_negative
            return float, {"metavar": TIME if of == "seconds" else "X", "callback": callback}
        case Instant(number):
            return str, {"metavar": "WHEN", "callback": _instant(number)}
        case ListOf():
            return str, {"metavar": "HOST,HOST,..."}
        case Flag():
            return bool, {}
    return str, {"metavar": "TEXT"}


def _instant(number: Number) -> Callable[[str | None], str | None]:
    """Return what refuses texts that are no time; clock times wait for the problem's start."""

    def check(text: str | None) -> str | None:
        if text is not None and not is_instant(text):
            try:
                number.read(number_in(text), "S")
            except ProblemError as error:
                said = f"{str(error).removeprefix('S ')}, or {UNDERSTOOD}"
                raise typer.BadParameter(said) from None
        return text

    return check
