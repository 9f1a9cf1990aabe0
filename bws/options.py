"""Options: declared once, as fields of a dataclass, for the command line, for files and for documentation;
and types of numbers and names that let no call fail in a library or run forever.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import click

__all__ = [
    "MAX_COUNT",
    "MAX_RESAMPLES",
    "MAX_SEED",
    "RESAMPLES",
    "SEED",
    "Number",
    "Option",
    "RegisteredName",
    "RenamedOption",
    "check_options",
    "checked_value",
    "click_option",
    "click_options",
    "declarations",
    "option",
    "problem_with",
]

MAX_SEED = 2**32 - 1
"""Largest seed that every random number generator in use takes: those of NumPy, PyTorch and scikit-learn."""
MAX_COUNT = 10**9
"""Upper end of counts that the data limits further."""
MAX_RESAMPLES = 1_000_000
"""Upper end of numbers of resamples and trials."""

Command = TypeVar("Command", bound=Callable[..., Any])

NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
int_range = cache(click.IntRange)
SEED = int_range(0, MAX_SEED)
RESAMPLES = int_range(1, MAX_RESAMPLES)


class Number(click.FloatRange):
    """A finite number between two ends; comparisons with the ends alone let NaN through."""

    name = "number"

    def __init__(
        self, low: float, high: float, *, min_open: bool = False, max_open: bool = False
    ) -> None:
        super().__init__(low, high, min_open=min_open, max_open=max_open)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; BadParameter where it is none, NaN, infinite or outside."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not finite; expected a number", param, ctx)
        converted: float = super().convert(number, param, ctx)
        return converted


class RegisteredName(click.Choice[str]):
    """One of the names in a registry, whose modules are imported when the names are needed."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names, in the order of the registry."""
        return tuple(self._names())


class RenamedOption(click.Option):
    """An option with former names: hidden from the help, still accepted, with a warning (see `Command`)."""

    def __init__(self, *args: Any, former_names: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.former_names = tuple(former_names)


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option: its help and its allowed values.

    The type is that of the field: a text, a whole number, a number, true or false, or a tuple of them, each
    once. Where the default of the field is None, None is allowed as well.
    """

    help: str | None
    choices: Iterable[str] | Callable[[], Iterable[str]] = ()
    """The allowed words, or a function that returns those of a registry; empty: any."""
    bounds: tuple[float, float] | None = None
    """The smallest and the largest allowed number."""
    min_open: bool = False
    """Whether the number must be larger than the smallest one."""
    max_open: bool = False
    """Whether the number must be smaller than the largest one."""
    pattern: str = ".*"
    """Regular expression that a text must match."""
    parse: Callable[[Any], Any] | None = None
    """Returns the value of what a file or the command line states; ValueError for anything else."""
    expects: str = ""
    """What messages say is expected; empty: what follows from the type, or what `parse` says."""
    metavar: str | None = None
    """Placeholder of the value in the help."""
    flag: str = ""
    """Name on the command line; by default that of the field with hyphens."""
    former_names: tuple[str, ...] = ()
    """Former names on the command line, which still work and warn."""
    none: str = ""
    """Word for None on the command line."""

    def words(self) -> tuple[str, ...]:
        """Return the allowed words."""
        return tuple(self.choices() if callable(self.choices) else self.choices)

    def expected(self, kind: type) -> str:
        """Return what is expected of a value of a type."""
        name = NAMES[kind]
        if self.expects or self.choices:
            return self.expects or f"one of {', '.join(self.words())}"
        if not self.bounds:
            return name
        low, high = self.bounds
        if self.min_open or self.max_open:
            ends = "above" if self.min_open else "from", "below" if self.max_open else "to"
            return f"{name} {ends[0]} {low} and {ends[1]} {high}".replace("and to", "and up to")
        return f"{name} from {low} to {high}"

    def allows(self, kind: type, value: Any) -> bool:
        """Tell whether a value is of the type and among the allowed ones."""
        if not isinstance(value, (int, float) if kind is float else kind):
            return False
        if isinstance(value, bool):
            return kind is bool
        if isinstance(value, str):
            fits = re.fullmatch(self.pattern, value, re.DOTALL) is not None
            return fits and (not self.choices or value in self.words())
        number: Any = value
        low, high = self.bounds or (-math.inf, math.inf)
        above = number > low if self.min_open else number >= low
        return above and bool(number < high if self.max_open else number <= high)

    def click_type(self, kind: type) -> click.ParamType[Any] | None:
        """Return the type of a value on the command line."""
        if self.none or self.parse or self.pattern != ".*":
            return _Parsed(self, kind)
        if self.choices:
            return RegisteredName(self.words)
        if kind is int and self.bounds:
            return int_range(*self.bounds)
        if self.bounds:
            return Number(*self.bounds, min_open=self.min_open, max_open=self.max_open)
        return None


class _Parsed(click.types.StringParamType):
    """A text that is checked and parsed as the declaration of an option says."""

    def __init__(self, declared: Option, kind: type) -> None:
        self._declared, self._kind = declared, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; BadParameter where it is not allowed."""
        declared = self._declared
        if declared.none and value in (declared.none, None):
            return None
        try:
            parsed = declared.parse(value) if declared.parse else self._kind(value)
            if declared.allows(self._kind, parsed):
                return parsed
            message = ""
        except ValueError as error:
            message = "" if declared.none else str(error)
        word = f"{declared.none} or " if declared.none else ""
        expected = f"{value!r} is invalid; expected {word}{declared.expected(self._kind)}"
        return self.fail(message or expected, param, ctx)


def option(default: Any, help: str | None, **settings: Any) -> Any:  # noqa: A002
    """Return a dataclass field with its default; settings are those of `Option`."""
    return field(default=default, metadata={"option": Option(help, **settings)})


@cache
def declarations(owner: type) -> Mapping[str, Option]:
    """Return the declared options of a dataclass by the names of their fields."""
    return {one.name: one.metadata["option"] for one in fields(owner) if "option" in one.metadata}


@cache
def _types(owner: type, name: str) -> tuple[tuple[Any, ...], bool]:
    """Return the type of an option, of a tuple what is between its brackets; and whether it may be None."""
    hint = get_type_hints(owner)[name]
    is_optional = NoneType in get_args(hint)
    if is_optional:
        (hint,) = set(get_args(hint)) - {NoneType}
    return get_args(hint) or (hint,), is_optional


def checked_value(owner: type, name: str, value: Any, called: str = "") -> Any:
    """Return the value that a file states for an option, parsed; ValueError says what is expected.

    called: the name of the option in the file, where that is another.
    """
    if name not in declarations(owner):
        raise ValueError(f"{name} is unknown; expected one of {', '.join(declarations(owner))}")
    declared, called = declarations(owner)[name], called or name
    (kind, *others), is_optional = _types(owner, name)
    if value is None and is_optional:
        return None
    if others:
        fits = isinstance(value, list | tuple) and all(declared.allows(kind, one) for one in value)
        if fits and (... not in others or len(set(value)) == len(value)):
            return tuple(value)
        raise ValueError(f"{called} is {value!r}; expected a list of {declared.expected(kind)}")
    if declared.parse is None or (kind is str and not isinstance(value, str)):
        if declared.allows(kind, value):
            return value
        raise ValueError(f"{called} is {value!r}; expected {declared.expected(kind)}")
    try:
        return declared.parse(value)
    except ValueError as error:
        said = f" is {value!r}; expected {declared.expects}" if declared.expects else f": {error}"
        raise ValueError(f"{called}{said}") from None


def problem_with(owner: type, name: str, value: Any) -> str:
    """Return what is wrong with the name or the value of an option; empty where nothing is."""
    try:
        checked_value(owner, name, value)
    except ValueError as error:
        return str(error)
    return ""


def check_options(instance: Any) -> None:
    """Raise ValueError for the values of a dataclass that its declarations do not allow."""
    owner: type = type(instance)
    problems = [problem_with(owner, name, getattr(instance, name)) for name in declarations(owner)]
    if any(problems):
        raise ValueError("; ".join(filter(None, problems)))


def click_option(owner: type, name: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """Return click's option of a declared one; names and settings take the place of the declaration's."""
    declared, (types, _) = declarations(owner)[name], _types(owner, name)
    default = next(one.default for one in fields(owner) if one.name == name)
    flag = declared.flag or f"--{name.replace('_', '-')}"
    own: dict[str, Any] = {"help": declared.help, "metavar": declared.metavar}
    if types != (bool,):
        of_values = [declared.click_type(one) for one in types]
        own["type"] = of_values[0] if len(types) == 1 else tuple(of_values)
        own["default"] = declared.none or default
        own["show_default"] = own["default"] is not None
    elif default and declared.flag:  # the flag turns it off
        own |= {"is_flag": True, "callback": lambda _, __, given: not given}
    else:
        flag += f"/--no-{name}" if default else ""
        own |= {"is_flag": True, "default": default}
    if declared.former_names and not names:
        own |= {"cls": RenamedOption, "former_names": declared.former_names}
    return click.option(*(names or (flag, name)), **own | settings)


def click_options(owner: type, *names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds declared options in the order of the names; without names, all."""

    def decorate(command: Command) -> Command:
        for name in reversed(names or tuple(declarations(owner))):
            command = click_option(owner, name)(command)
        return command

    return decorate
