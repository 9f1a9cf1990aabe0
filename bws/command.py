"""What every command shares: --json, --quiet, --verbose, --version, examples, and how it fails.

Exit codes: 0 done; 2 the call or the input is wrong; 1 it failed.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, TypeVar

import click

from bws.extras import missing_module
from bws.options import RenamedOption
from bws.problems import InputError, Problem, summary

__all__ = [
    "Command",
    "Console",
    "command",
    "group",
    "imported_command",
    "json_ready",
    "print_version",
    "say",
]

PROBLEMS_SHOWN = 100
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
FILES_KEPT = "output files are complete or unchanged"
OBEYED = {
    code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}
"""Control characters, which a terminal would obey: in names and messages that come from strangers' files."""
T = TypeVar("T")


def say(line: str) -> None:
    """Write a line to standard error, above a progress bar where one is shown."""
    bars = getattr(sys.modules.get("tqdm"), "tqdm", None)  # no bar where it is not loaded
    if bars is None:
        click.echo(line, err=True)
    else:
        bars.write(line, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Console:
    """Where a command's words go: the answer to standard output, everything else to standard error."""

    as_json: bool
    quiet: bool
    verbose: bool = False

    def note(self, message: str) -> None:
        """Say something that is not the answer."""
        if not self.quiet:
            say(message.translate(OBEYED))

    def warn(self, problems: Sequence[Problem]) -> None:
        """Say what was found but does not stop the work; --quiet does not hide it."""
        for line in _shortened(problems):
            click.echo(f"warning: {line}".translate(OBEYED), err=True)

    def answer(self, text: str, document: Mapping[str, Any]) -> None:
        """Print the answer: `text` for people, or with --json the document and nothing else."""
        if self.as_json:
            text = json.dumps(json_ready(document), ensure_ascii=False, indent=2)
        click.echo(text.translate(OBEYED))

    def progress(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Pass `work` on while a bar shows how far it is; no bar where nobody watches."""
        from tqdm import tqdm

        hidden = self.quiet or not sys.stderr.isatty()
        yield from tqdm(work, desc=label, total=total, disable=hidden, leave=False, file=sys.stderr)


class Command(click.Command):
    """A click command whose input errors are one line a problem, and which shows an example.

    logs_itself: the function puts a handler of its own at the root of logging, which shows with
        --verbose what would else be shown in our own form.
    kept: what Ctrl-C leaves behind, with parameters of the command in braces.
    sections: the parameters that open a section of the help, each with its title.
    """

    def __init__(
        self,
        *args: Any,
        example: str = "",
        logs_itself: bool = False,
        kept: str = FILES_KEPT,
        sections: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.example, self.logs_itself, self.kept = example, logs_itself, kept
        self.sections = sections or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, former option names included."""
        return super().parse_args(ctx, self.use_current_names(args))

    def use_current_names(self, args: Sequence[str]) -> list[str]:
        """Replace former option names by the current ones, with a warning for each."""
        current = {
            former: param.opts[0]
            for param in self.params
            if isinstance(param, RenamedOption)
            for former in param.former_names
        }
        end = args.index("--") if "--" in args else len(args)
        replaced = list(args)
        for index, argument in enumerate(args[:end]):
            name, equals, value = argument.partition("=")
            if name in current:
                say(f"warning: {name} is deprecated; use {current[name]}")
                replaced[index] = current[name] + equals + value
        return replaced

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options in their sections; those before the first one, and --help, have none."""
        title, records = "Options", dict[str, list[tuple[str, str]]]()
        for param in self.get_params(ctx):
            title = (
                "Options" if "--help" in param.opts else self.sections.get(str(param.name), title)
            )
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                records.setdefault(title, []).append(record)
        for title, of_section in records.items():
            with formatter.section(title):
                formatter.write_dl(of_section)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the example after the options."""
        _write_example(formatter, self.example)

    def invoke(self, ctx: click.Context) -> Any:
        """Run; errors of input and of the system become one line a problem and an exit code."""
        try:
            with self._shown(ctx):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say(f"\nstopped: {self.kept.format(**ctx.params)}".translate(OBEYED))
            raise
        except ModuleNotFoundError as error:
            raise missing_module(error) or error from None
        except InputError as error:
            raise _BadInput("\n".join(_shortened(error.problems))) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{place}{error.strerror or error}") from None
        except MemoryError as error:
            why = f": {error}" if str(error) else ""
            raise click.ClickException(f"there is not enough memory{why}") from None

    def _shown(self, ctx: click.Context) -> AbstractContextManager[None]:
        """Return what shows the work with --verbose; without it, nothing of logging is imported."""
        if not ctx.params.get("verbose"):
            return nullcontext()
        if ctx.params.get("quiet"):
            raise click.UsageError("--quiet and --verbose cannot be given together", ctx)
        from bws.verbosity import shown

        return shown(handled=self.logs_itself)


class _BadInput(click.ClickException):
    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message.translate(OBEYED), err=True, file=file)


def command(
    name: str,
    example: str,
    *,
    subcommands: Mapping[str, str] | None = None,
    **settings: Any,
) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command; it takes a `Console` first.

    The docstring is the help. Add arguments and options with click's own decorators below this one.

    subcommands: the commands that the first argument may name instead, each as ``module:function``.
    settings: those of `Command`.
    """
    if subcommands:
        settings |= {"cls": _CommandGroup, "places": subcommands, "invoke_without_command": True}

    def decorate(function: Callable[..., Any]) -> Command:
        @functools.wraps(function)
        def run(*, as_json: bool, quiet: bool, verbose: bool, **kwargs: Any) -> Any:
            return function(Console(as_json, quiet, verbose), **kwargs)

        for option in reversed(_shared_options()):
            run = option(run)
        made: Command = click.command(
            name, **{"cls": Command} | settings, example=example, context_settings=CONTEXT_SETTINGS
        )(run)
        return made

    return decorate


def _write_example(formatter: click.HelpFormatter, example: str) -> None:
    with formatter.section("Example"):
        for line in example.strip().splitlines():
            formatter.write(f"  {line.strip()}\n")


class _Group(click.Group):
    """Commands whose modules are imported only when they are called, or listed by --help."""

    def __init__(
        self, *args: Any, places: Mapping[str, str], example: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.places, self.example = places, example

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were given."""
        return list(self.places)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command."""
        return imported_command(self.places[name]) if name in self.places else None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the example after the commands."""
        _write_example(formatter, self.example)
        formatter.write("\nEvery command takes --json, --quiet, --verbose, --version and --help.\n")


class _CommandGroup(Command, _Group):
    """A command with arguments of its own, whose first argument may also be the name of another command."""

    allow_interspersed_args = True
    allow_extra_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave the arguments to the command that the first one names; else read them."""
        if args and args[0] in self.places:
            ctx.args = args
            return args
        # a first word that is no option can only be a command where no arguments are taken
        takes_arguments = any(isinstance(param, click.Argument) for param in self.params)
        if args and not args[0].startswith("-") and not takes_arguments:
            names = ", ".join(self.places)
            raise click.UsageError(f"No such command {args[0]!r}; there are {names}.")
        return click.Command.parse_args(self, ctx, self.use_current_names(args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the arguments are of."""
        if not ctx.args:
            return super().invoke(ctx)
        name, *args = ctx.args
        named = imported_command(self.places[name])
        with named.make_context(f"{ctx.info_name} {name}", args) as context:
            return named.invoke(context)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage of the command itself."""
        return click.Command.collect_usage_pieces(self, ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def imported_command(place: str) -> click.Command:
    """Return the command at ``module:function``; ClickException where an optional module is missing."""
    module, function = place.split(":")
    try:
        found: click.Command = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        raise missing_module(error) or error from None
    return found


def group(places: Mapping[str, str], example: str) -> Callable[[Callable[[], None]], click.Group]:
    """Make a function the group of the commands in `places`: a name, and ``module:function``.

    The docstring is the help.
    """

    def decorate(function: Callable[[], None]) -> click.Group:
        made = click.command(
            cls=_Group, places=places, example=example, context_settings=CONTEXT_SETTINGS
        )
        return made(_version_option()(function))

    return decorate


def _shared_options() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON document, nothing else."
        ),
        click.option("--quiet", is_flag=True, help="No progress bar and no notes."),
        click.option(
            "--verbose", is_flag=True,
            help="Say what is read, written and computed, with times; where an error arose.",
        ),
        _version_option(),
    ]  # fmt: skip


def _version_option() -> Callable[[Any], Any]:
    return click.option(
        "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version,
        help="Print the version of giccs.",
    )  # fmt: skip


def print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the version and end, where `--version` was given."""
    if wanted:
        from importlib.metadata import version

        click.echo(f"{ctx.info_name} (giccs {version('giccs')})")
        ctx.exit()


def _shortened(problems: Sequence[Problem]) -> list[str]:
    lines = summary(problems)
    more = len(lines) - PROBLEMS_SHOWN
    return (
        [*lines[:PROBLEMS_SHOWN], f"... and {more} more problems like these"] if more > 0 else lines
    )


def json_ready(value: Any) -> Any:
    """Return the value as plain JSON: arrays as lists, NaN and infinities as null.

    >>> json_ready({"score": float("nan"), "n": (1, 2)})
    {'score': None, 'n': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_ready(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(inner) for inner in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy
        return json_ready(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
