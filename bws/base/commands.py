"""Common behaviour of all commands: --json, --quiet, --verbose, --version, examples, and error handling.

Exit codes: 0 success; 2 invalid usage or input; 1 other failure; 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO, Any, TypeVar

import click

from bws.base.extras import missing_module
from bws.base.file_uses import SameFileError, protected_inputs
from bws.base.options import RenamedOption, file_uses
from bws.base.problems import InputError, Problem, suggestion, summary
from bws.base.progress import progress_shown_by
from bws.base.terminal import echo, printable, say

PROBLEMS_SHOWN = 100
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
INTERRUPTED = 130
"""Exit code after Ctrl-C, as that of a shell: 128 + SIGINT."""
BAR_AFTER_SECONDS = 2
ANSWERED = "bws.base.answered"
"""Key of a context's meta, set when no document of --json may be printed any more."""
FILES_KEPT = "output files are complete or unchanged"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Console:
    """Output of a command: the answer on standard output, everything else on standard error."""

    as_json: bool
    quiet: bool
    verbose: bool = False
    failures: list[Problem] = field(default_factory=list)
    """Problems of single outputs; the command writes the others, and then ends with exit code 2."""

    def note(self, message: str) -> None:
        """Print an informational message."""
        if not self.quiet:
            say(message)

    def warn(self, problems: Sequence[Problem]) -> None:
        """Print warnings; --quiet does not suppress them."""
        for line in _shortened(problems):
            echo(f"warning: {line}", err=True)

    def answer(self, text: str, document: Mapping[str, Any]) -> None:
        """Print the result: `text`, or with --json only the document."""
        if self.as_json:
            text = json.dumps(json_ready(document), ensure_ascii=False, indent=2)
            if context := click.get_current_context(silent=True):
                context.meta[ANSWERED] = True
        echo(text)

    def progress(self, work: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
        """Yield from `work` with a progress bar, if standard error is a terminal."""
        yield from self._bar(work, label, total)

    def progress_of_slow_work(
        self, work: Iterable[T], label: str, total: int | None = None
    ) -> Iterator[T]:
        """Yield from `work` as `progress`, with a bar only if it takes longer than two seconds."""
        yield from self._bar(work, label, total, delay=BAR_AFTER_SECONDS)

    def _bar(
        self, work: Iterable[T], label: str, total: int | None, delay: float = 0
    ) -> Iterable[T]:
        if self.quiet or not sys.stderr.isatty():
            return work
        from tqdm import tqdm

        bar: Iterable[T] = tqdm(
            work, desc=label, total=total, leave=False, file=sys.stderr, delay=delay
        )
        return bar


class Command(click.Command):
    """A click command that reports input errors with one line per problem and shows an example in its help.

    logs_itself: the function installs its own root handler for logging, which replaces the log format of
    --verbose.
    kept: what is kept after Ctrl-C, with parameters of the command in braces.
    sections: the first parameter of each section of the help, with the title of the section.
    """

    def __init__(
        self,
        *args: Any,
        example: str = "",
        logs_itself: bool = False,
        interrupt_message: str = FILES_KEPT,
        sections: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.example, self.logs_itself, self.interrupt_message = (
            example,
            logs_itself,
            interrupt_message,
        )
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
        """Write the options by section; options before the first section, and --help, have none."""
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
        """Write the example after the options."""
        _write_example(formatter, self, ctx)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the arguments."""
        with _reported_errors("--json" in args, {}):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; convert input and system errors to messages and exit codes."""
        with _reported_errors(bool(ctx.params.get("as_json")), ctx.meta):
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            with self._logging_context(ctx), protected_inputs(file_uses(ctx)):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            say(f"\nstopped: {self.interrupt_message.format(**ctx.params)}")
            raise
        except ModuleNotFoundError as error:
            raise missing_module(error) or error from None
        except InputError as error:
            if isinstance(error, SameFileError):  # Standard output may be the input.
                ctx.meta[ANSWERED] = True
            raise _BadInput("\n".join(_shortened(error.problems))) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            location = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{location}{error.strerror or error}") from None
        except MemoryError as error:
            reason = f": {error}" if str(error) else ""
            raise click.ClickException(f"not enough memory{reason}") from None

    def _logging_context(self, ctx: click.Context) -> AbstractContextManager[None]:
        """Return the context manager of --verbose; without the option, no logging code is imported."""
        if not ctx.params.get("verbose"):
            return nullcontext()
        if ctx.params.get("quiet"):
            raise click.UsageError("--quiet and --verbose are mutually exclusive", ctx)
        from bws.base.verbosity import show_logs

        return show_logs(handled=self.logs_itself)


@contextmanager
def _reported_errors(as_json: bool, meta: Mapping[str, Any]) -> Iterator[None]:
    """Escape the messages of errors; with --json, print a document unless that of the answer is printed."""
    try:
        with _interrupted_with_its_code():
            yield
    except click.ClickException as error:
        vars(error)["message"] = printable(error.message)  # Final in click's annotations
        if as_json and ANSWERED not in meta:
            with suppress(OSError):  # The error may be that of standard output.
                echo(json.dumps({"error": error.format_message()}, ensure_ascii=False))
        raise


@contextmanager
def _interrupted_with_its_code() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say("\nAborted!")
        raise click.exceptions.Exit(INTERRUPTED) from None


class _BadInput(click.ClickException):
    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        echo(self.message, err=True)


def command(
    name: str,
    example: str,
    *,
    subcommands: Mapping[str, str] | None = None,
    **settings: Any,
) -> Callable[[Callable[..., Any]], Command]:
    """Decorate a function as a command; it receives a `Console` as its first argument.

    The docstring is the help. Arguments and options are added by click's decorators below this one.

    subcommands: commands that the first argument may select, each as ``module:function``.
    settings: those of `Command`.
    """
    if subcommands:
        settings |= {
            "cls": _CommandGroup,
            "subcommands": subcommands,
            "invoke_without_command": True,
        }

    def decorate(function: Callable[..., Any]) -> Command:
        @functools.wraps(function)
        def run(*, as_json: bool, quiet: bool, verbose: bool, **kwargs: Any) -> Any:
            console = Console(as_json, quiet, verbose)
            with progress_shown_by(console.progress_of_slow_work):
                result = function(console, **kwargs)
            if console.failures:
                raise InputError(console.failures)
            return result

        for option in reversed(_shared_options()):
            run = option(run)
        command: Command = click.command(
            name, **{"cls": Command} | settings, example=example, context_settings=CONTEXT_SETTINGS
        )(run)
        return command

    return decorate


def _write_example(
    formatter: click.HelpFormatter, command: Command | Group, ctx: click.Context
) -> None:
    """Write the example of a command, with the name by which the command was called."""
    with formatter.section("Example"):
        for line in command.example.strip().splitlines():
            line = re.sub(rf"^{command.name}\b", ctx.command_path, line.strip())
            formatter.write(f"  {line}\n")


class Group(click.Group):
    """A group whose commands are imported only when they are called or listed by --help."""

    def __init__(
        self, *args: Any, subcommands: Mapping[str, str], example: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.subcommands, self.example = subcommands, example

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the arguments; Ctrl-C has its exit code already here, where --help imports all commands."""
        with _interrupted_with_its_code():
            return super().make_context(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in their given order."""
        return list(self.subcommands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command."""
        return imported_command(self.subcommands[name]) if name in self.subcommands else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command, the command and its arguments; raise UsageError without it."""
        if args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        name, *others = args
        with _interrupted_with_its_code():
            found = self.get_command(ctx, name)
        if found is None:
            raise self.no_such_command(ctx, name)
        return name, found, others

    def no_such_command(self, ctx: click.Context, name: str) -> click.UsageError:
        """Return the error for an unknown command, with the closest name."""
        names = self.list_commands(ctx)
        expected = f"expected one of {', '.join(names)}"
        guess = suggestion(name, names)
        return click.UsageError(f"No such command {name!r}; {expected}{guess or '.'}", ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example after the commands."""
        _write_example(formatter, self, ctx)
        formatter.write(
            "\nEvery command supports --json, --quiet, --verbose, --version and --help.\n"
        )


class StagedGroup(Group):
    """A group whose help lists the commands by stage, and imports none of them.

    stages: title -> name of a command -> its location ``module:function`` and its line in the help.
    """

    def __init__(
        self, *args: Any, stages: Mapping[str, Mapping[str, tuple[str, str]]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.stages = stages

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section of commands per stage; the epilog states the options of all commands."""
        width = max(map(len, self.subcommands))
        for stage, commands in self.stages.items():
            with formatter.section(stage):
                formatter.write_dl(
                    [(f"{name:<{width}}", summary) for name, (_, summary) in commands.items()]
                )


class _CommandGroup(Command, Group):
    """A command with its own arguments whose first argument may also be the name of a subcommand."""

    allow_interspersed_args = True
    allow_extra_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, unless the first one selects a subcommand."""
        if args and args[0] in self.subcommands:
            ctx.args = args
            return args
        # Without positional arguments, a first word that is not an option can only be a subcommand.
        takes_arguments = any(isinstance(param, click.Argument) for param in self.params)
        if args and not args[0].startswith("-") and not takes_arguments:
            raise self.no_such_command(ctx, args[0])
        return click.Command.parse_args(self, ctx, self.use_current_names(args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the selected command."""
        if not ctx.args:
            return super().invoke(ctx)
        name, *args = ctx.args
        subcommand = imported_command(self.subcommands[name])
        with subcommand.make_context(f"{ctx.command_path} {name}", args) as context:
            return subcommand.invoke(context)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage of the command without subcommands."""
        return click.Command.collect_usage_pieces(self, ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, followed by the subcommands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def imported_command(reference: str) -> click.Command:
    """Return the command at ``module:function``; raise ClickException if an optional module is missing."""
    module, function = reference.split(":")
    try:
        with _interrupted_with_its_code():
            command: click.Command = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        raise missing_module(error) or error from None
    return command


def group(
    name: str,
    subcommands: Mapping[str, str],
    example: str,
    *,
    cls: type[Group] = Group,
    **settings: Any,
) -> Callable[[Callable[[], None]], click.Group]:
    """Decorate a function as a group of `subcommands`, a mapping from names to ``module:function``.

    The docstring is the help.

    settings: those of `cls`.
    """

    def decorate(function: Callable[[], None]) -> click.Group:
        command = click.command(
            name,
            cls=cls,
            subcommands=subcommands,
            example=example,
            context_settings=CONTEXT_SETTINGS,
            **settings,
        )
        return command(_version_option()(function))

    return decorate


def _shared_options() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--json", "as_json", is_flag=True, help="Print a single JSON document."
        ),
        click.option("--quiet", is_flag=True, help="Suppress progress bars and notes."),
        click.option(
            "--verbose", is_flag=True,
            help="Log inputs, outputs and computations with times, and tracebacks of errors.",
        ),
        _version_option(),
    ]  # fmt: skip


def _version_option() -> Callable[[Any], Any]:
    return click.option(
        "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version,
        help="Print the version of giccs.",
    )  # fmt: skip


def print_version(ctx: click.Context, parameter: click.Parameter, is_requested: bool) -> None:
    """Print the version and exit, if `--version` was given."""
    if is_requested:
        from importlib.metadata import version

        echo(f"{ctx.command_path} (giccs {version('giccs')})")
        ctx.exit()


def _shortened(problems: Sequence[Problem]) -> list[str]:
    lines = summary(problems)
    more = len(lines) - PROBLEMS_SHOWN
    return [*lines[:PROBLEMS_SHOWN], f"... and {more} more similar problems"] if more > 0 else lines


def json_ready(value: Any) -> Any:
    """Return the value as JSON-serialisable data: arrays as lists, NaN and infinities as null.

    >>> json_ready({"score": float("nan"), "n": (1, 2)})
    {'score': None, 'n': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_ready(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(inner) for inner in value]
    if hasattr(value, "document"):  # an estimate
        return json_ready(value.document())
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy.
        return json_ready(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def check_combinations(
    given: Mapping[str, object],
    *,
    requires: Mapping[str, str] | None = None,
    excludes: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raise UsageError for an option without the one that it requires, or with one that it excludes.

    given: option -> value; empty values are options that are not given.

    >>> check_combinations({"--detect": 0.1, "--compare": False}, requires={"--detect": "--compare"})
    Traceback (most recent call last):
    click.exceptions.UsageError: --detect requires --compare
    """
    for option, needed in (requires or {}).items():
        if given[option] and not given[needed]:
            raise click.UsageError(f"{option} requires {needed}")
    for option, others in (excludes or {}).items():
        if given[option] and any(given[other] for other in others):
            *first, last = others
            names = f"{', '.join(first)} or {last}" if first else last
            raise click.UsageError(f"{option} cannot be combined with {names}")
