"""Declarations of options as fields of a dataclass, for the command line, files and documentation.

Types of numbers and names reject values that would fail inside a library or run forever.
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

from bws.base.file_uses import FileUse, Role
from bws.base.problems import suggestion

MAX_SEED = 2**32 - 1
"""Largest seed accepted by the random number generators of NumPy, PyTorch and scikit-learn."""
MAX_COUNT = 10**9
"""Upper bound of counts that the data limits further."""
MAX_RESAMPLES = 1_000_000
"""Upper bound of numbers of resamples and trials."""

Command = TypeVar("Command", bound=Callable[..., Any])

NAMES = {str: "a text", int: "an integer", float: "a number", bool: "true or false"}
int_range = cache(click.IntRange)
SEED = int_range(0, MAX_SEED)
RESAMPLES = int_range(1, MAX_RESAMPLES)


class Number(click.FloatRange):
    """A finite number between two bounds; comparisons with the bounds alone would accept NaN."""

    name = "number"

    def __init__(
        self, low: float, high: float, *, min_open: bool = False, max_open: bool = False
    ) -> None:
        super().__init__(low, high, min_open=min_open, max_open=max_open)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; raise BadParameter for text, NaN, infinities and numbers out of range."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not finite; expected a number", param, ctx)
        converted: float = super().convert(number, param, ctx)
        return converted


class Choice(click.Choice[str]):
    """One of several words; the error for another value suggests the closest one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the message for another value."""
        message = super().get_invalid_choice_message(value, ctx)
        guess = suggestion(str(value), self.choices)
        return message.rstrip(".") + guess if guess else message


class RegisteredName(Choice):
    """A name in a registry, whose modules are imported when the names are needed."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names, in the order of the registry."""
        return tuple(self._names())


class FilePath(click.types.StringParamType):
    """A text with the path of a file or folder, which is declared to the command that receives it.

    role: what the command does with the path. pattern: matches the text; its group is the path.
    companion: suffix of a further file that the command keeps beside it.
    """

    def __init__(self, role: Role, pattern: str = "(.*)", companion: str = "") -> None:
        self.role, self._pattern, self._companion = role, re.compile(pattern), companion

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        text: str = super().convert(value, param, ctx)
        match = self._pattern.match(text)
        if match and match[1] and param and ctx:
            is_option = isinstance(param, click.Option)
            name = param.opts[0] if is_option else param.metavar or str(param.name).upper()
            paths = [match[1], *filter(None, [self._companion and match[1] + self._companion])]
            uses = [FileUse(name.strip("[]."), path, self.role) for path in paths]
            ctx.meta.setdefault(FILE_USES, []).extend(uses)
        return text


FILE_USES = "bws.base.file_uses"
INPUT = FilePath("input")
"""A file or folder that is read; also the name of a sample, a data set of the hub, or a database."""
MODEL = FilePath("input", r"(?:[a-z0-9-]+:)?([^+]*)")
"""A model, which may be a file or folder: ``static:FILE+whitening``."""
OUTPUT = FilePath("output")
FIGURE = FilePath("output", "(?:[^/=]*=)?(.*)")
"""A file of a figure with its name: ``NAME=FILE``."""
OUTPUT_FOLDER = FilePath("folder")
UPDATED = FilePath("update", "(?:sqlite:///)?(.*)")
"""A file or folder that the command created earlier and keeps up to date."""
RESUMED = FilePath("update", companion=".jsonl")
"""An output with the journal from which it is completed (`giccs.journal`)."""


def file_uses(ctx: click.Context) -> list[FileUse]:
    """Return the files of a command: those given or of default values, and standard output."""
    uses: list[FileUse] = ctx.meta.get(FILE_USES, [])
    if any(use.path == "-" and use.role != "input" for use in uses):
        return uses
    return [*uses, FileUse("standard output", "-", "output")]


class RenamedOption(click.Option):
    """An option with former names, which are hidden from the help and accepted with a warning (see
    `Command`)."""

    def __init__(self, *args: Any, former_names: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.former_names = tuple(former_names)


@dataclass(frozen=True, slots=True)
class Option:
    """Declaration of an option: its help and its allowed values.

    The type is that of the field: text, an integer, a number, a boolean, or a tuple of distinct values. None
    is allowed if it is the default of the field.
    """

    help: str | None
    choices: Iterable[str] | Callable[[], Iterable[str]] = ()
    """The allowed words, or a function that returns those of a registry; empty for any text."""
    bounds: tuple[float, float] | None = None
    """Lower and upper bound of a number."""
    min_open: bool = False
    """Whether the lower bound is excluded."""
    max_open: bool = False
    """Whether the upper bound is excluded."""
    pattern: str = ".*"
    """Regular expression for text."""
    parse: Callable[[Any], Any] | None = None
    """Converts a raw value from a file or the command line; raises ValueError for invalid values."""
    expects: str = ""
    """Expectation in messages; if empty, derived from the type or reported by `parse`."""
    metavar: str | None = None
    """Placeholder of the value in the help."""
    flag: str = ""
    """Name on the command line; by default the name of the field with hyphens."""
    former_names: tuple[str, ...] = ()
    """Former names on the command line, which are deprecated."""
    deprecated: str = ""
    """What to use instead; a deprecated option is hidden from the help and accepted with a warning."""
    none: str = ""
    """Word for None on the command line."""
    is_file: bool = False
    """Whether the text may name a file, which is read."""

    def words(self) -> tuple[str, ...]:
        """Return the allowed words."""
        return tuple(self.choices() if callable(self.choices) else self.choices)

    def expected(self, kind: type) -> str:
        """Return a description of the expected values of a type."""
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
        """Return whether a value has the type and is allowed."""
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
        """Return the click type of a value on the command line."""
        if self.none or self.parse or self.pattern != ".*":
            return _Parsed(self, kind)
        if self.is_file:
            return INPUT
        if self.choices:
            return RegisteredName(self.words)
        if kind is int and self.bounds:
            return int_range(*self.bounds)
        if self.bounds:
            return Number(*self.bounds, min_open=self.min_open, max_open=self.max_open)
        return None


class _Parsed(click.types.StringParamType):
    """Text that is validated and parsed according to the declaration of an option."""

    def __init__(self, declared: Option, kind: type) -> None:
        self._declared, self._kind = declared, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; raise BadParameter if it is not allowed."""
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
    """Return a dataclass field with its default; settings are the attributes of `Option`."""
    return field(default=default, metadata={"option": Option(help, **settings)})


@cache
def declarations(owner: type) -> Mapping[str, Option]:
    """Return the declared options of a dataclass by the names of their fields."""
    return {
        field.name: field.metadata["option"]
        for field in fields(owner)
        if "option" in field.metadata
    }


@cache
def _types(owner: type, name: str) -> tuple[tuple[Any, ...], bool]:
    """Return the type of an option, or of the elements of a tuple, and whether it may be None."""
    hint = get_type_hints(owner)[name]
    is_optional = NoneType in get_args(hint)
    if is_optional:
        (hint,) = set(get_args(hint)) - {NoneType}
    return get_args(hint) or (hint,), is_optional


def checked_value(owner: type, name: str, value: Any, called: str = "") -> Any:
    """Return the parsed value of an option from a file; raise ValueError with the expectation.

    called: the name of the option in the file, if different.
    """
    names = declarations(owner)
    if name not in names:
        expected = f"expected one of {', '.join(names)}{suggestion(name, names)}"
        raise ValueError(f"unknown option {name}; {expected}")
    declared, called = names[name], called or name
    (kind, *other_types), is_optional = _types(owner, name)
    if value is None and is_optional:
        return None
    if other_types:
        fits = isinstance(value, list | tuple) and all(
            declared.allows(kind, item) for item in value
        )
        if fits and (... not in other_types or len(set(value)) == len(value)):
            return tuple(value)
        raise ValueError(f"{called} is {value!r}; expected a list of {declared.expected(kind)}")
    if declared.parse is None or (kind is str and not isinstance(value, str)):
        if declared.allows(kind, value):
            return value
        raise ValueError(f"{called} is {value!r}; expected {declared.expected(kind)}")
    try:
        return declared.parse(value)
    except ValueError as error:
        problem = (
            f" is {value!r}; expected {declared.expects}" if declared.expects else f": {error}"
        )
        raise ValueError(f"{called}{problem}") from None


def problem_with(owner: type, name: str, value: Any) -> str:
    """Return the problem with the name or the value of an option, or an empty string."""
    try:
        checked_value(owner, name, value)
    except ValueError as error:
        return str(error)
    return ""


def check_options(instance: Any) -> None:
    """Raise ValueError for values of a dataclass that violate its declarations."""
    owner: type = type(instance)
    problems = [problem_with(owner, name, getattr(instance, name)) for name in declarations(owner)]
    if any(problems):
        raise ValueError("; ".join(filter(None, problems)))


def flag_of(name: str) -> str:
    """Return the flag of an option that declares none.

    >>> flag_of("batch_size")
    '--batch-size'
    """
    return f"--{name.replace('_', '-')}"


def click_option(owner: type, name: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """Return the click option of a declared one; names and settings override the declaration.

    An option with several values can be repeated; repeated values count once.
    """
    declared, (types, _) = declarations(owner)[name], _types(owner, name)
    default = next(field.default for field in fields(owner) if field.name == name)
    flag = declared.flag or flag_of(name)
    parameters: dict[str, Any] = {"help": declared.help, "metavar": declared.metavar}
    if ... in types:
        parameters |= {"multiple": True, "type": declared.click_type(types[0])}
        parameters |= {"default": default, "show_default": bool(default)}
        parameters |= {"callback": lambda _, __, values: tuple(dict.fromkeys(values))}
    elif types != (bool,):
        of_values = [declared.click_type(option_type) for option_type in types]
        parameters["type"] = of_values[0] if len(types) == 1 else tuple(of_values)
        parameters["default"] = declared.none or default
        parameters["show_default"] = parameters["default"] is not None
    elif default and declared.flag:  # The flag sets the field to false.
        parameters |= {"is_flag": True, "callback": lambda _, __, given: not given}
    else:
        flag += f"/--no-{name}" if default else ""
        parameters |= {"is_flag": True, "default": default}
    if declared.deprecated:
        parameters |= {"hidden": True, "deprecated": declared.deprecated}
    if declared.former_names and not names:
        parameters |= {"cls": RenamedOption, "former_names": declared.former_names}
    return click.option(*(names or (flag, name)), **parameters | settings)


def click_options(owner: type, *names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the named options in their order, or all options without names."""

    def decorate(command: Command) -> Command:
        for name in reversed(names or tuple(declarations(owner))):
            command = click_option(owner, name)(command)
        return command

    return decorate
