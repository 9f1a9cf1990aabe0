"""An analysis: one question to judgments, declared once, with its settings, tables and pictures.

Commands (`bws.cli.analyses`), the report and the explorer render what is declared here; an analysis
imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem

if TYPE_CHECKING:
    import altair as alt

    from bws.base.tables import ResultTable
    from bws.metadata import By
    from bws.paragraphs import Sentence
    from bws.records import Judgments

PACKAGES = ("bws", "giccs", "mturk", "giccs_app")
"""The packages of this project, whose errors are not caught."""
Translate = Callable[[str], str]
"""From an English title to that of another language."""


class MissingPictureError(ValueError):
    """The data cannot give a picture; the message is the reason."""


@dataclass(frozen=True)
class Drawing:
    """A picture of results, without the size, theme and language of its place."""

    chart: alt.Chart | alt.LayerChart
    title: str
    rows: Sequence[Mapping[str, Any]]
    """What is drawn: a row per mark."""
    remarks: Sequence[str] = ()
    """Notes on what is drawn, without full stops."""
    alternative: str = ""
    """Text for readers who cannot see the picture."""
    size: Mapping[str, int] = field(default_factory=dict)
    """Width and height in pixels on a page, if the picture needs its own."""
    opens: Mapping[str, str] = field(default_factory=dict)
    """What a click on a mark selects in the explorer: parameter of the link (``annotator``) -> column."""

    @property
    def sentences(self) -> list[str]:
        """The remarks, each with an initial capital."""
        return [remark[:1].upper() + remark[1:] for remark in self.remarks if remark]


@dataclass(frozen=True)
class Picture:
    """A picture of an analysis."""

    name: str
    text: str
    """What it shows, in the help of the command."""
    draw: Callable[..., Drawing]
    """Function of the results and `Translate`; it raises MissingPictureError."""
    of: Sequence[Analysis] = ()
    """Analyses whose results are drawn; by default the one of the picture."""
    max_annotators: int | None = None
    """Maximum number of annotators of whom it is drawn without a request."""
    is_on_request: bool = False
    """Whether only commands draw it, and pages with a place for it."""


@dataclass(frozen=True)
class Also:
    """Further analyses of a command, which a flag adds, or a setting of the same name that is given."""

    text: str
    """Help of the flag; empty for a setting."""
    analyses: Sequence[Analysis]


@dataclass(frozen=True)
class NoSettings:
    """Settings of an analysis without any."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """One question to judgments."""

    name: str
    """Name of its command, and key of the result in the document of another analysis that it is added to."""
    run: Callable[[Answers], Any]
    """Computes the result, which has a `document`; None if there is none."""
    settings: type = NoSettings
    """Dataclass of declared options (`bws.base.options.option`)."""
    tables: Callable[[Any], Sequence[ResultTable]] = lambda result: [result.result_table()]
    pictures: Sequence[Picture] = ()
    title: str = ""
    text: str = ""
    """What the numbers mean, for readers of a report."""
    summary: str = ""
    """The first line of the help of its command."""
    example: str = ""
    """Command lines in the help; by default the one without options."""
    also: Mapping[str, Also] = field(default_factory=dict)
    """Option -> what it adds."""
    absent: str = ""
    """Why there is no result, if it is None."""
    has_parts: bool = False
    """Whether `run` divides the judgments by `Answers.by`."""
    max_rows: int | None = None
    """Maximum number of rows on the terminal."""
    sentences: Callable[[Answers], Iterable[Sentence]] | None = None
    """The sentences of a paragraph for a paper, without those on the study and the version."""


@contextmanager
def errors_of(analysis: Analysis) -> Iterator[None]:
    """Raise InputError for errors other than ValueError in the code of another package."""
    package = analysis.run.__module__.partition(".")[0]
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        if package in PACKAGES:
            raise
        message = f"{type(error).__name__} in package {package}: {error}"
        raise InputError(Problem(f"analysis {analysis.name}", None, message)) from error


class Answers:
    """The results of analyses of the same judgments with the same settings; each is computed once.

    by: values of each tuple that divide the judgments into parts; see `bws.agreement`.
    """

    def __init__(self, judgments: Judgments, settings: Any = None, by: By | None = None) -> None:
        self.judgments, self.settings, self.by = judgments, settings, by
        self._results: dict[str, Any] = {}

    def result(self, analysis: Analysis) -> Any:
        """Return the result of an analysis."""
        if analysis.name not in self._results:
            with errors_of(analysis):
                self._results[analysis.name] = analysis.run(self)
        return self._results[analysis.name]

    def computed(self, analysis: Analysis) -> Any:
        """Return the result of an analysis if it is computed already, or None."""
        return self._results.get(analysis.name)

    def tables(self, analysis: Analysis) -> Sequence[ResultTable]:
        """Return the tables of an analysis; none without a result."""
        result = self.result(analysis)
        with errors_of(analysis):
            return [] if result is None else analysis.tables(result)

    def drawing(self, analysis: Analysis, picture: Picture, t: Translate = str) -> Drawing:
        """Return a picture of an analysis; raise MissingPictureError with the reason if there is none."""
        try:
            results = [self.result(each) for each in picture.of or [analysis]]
        except InputError as error:
            raise MissingPictureError(error.problems[0].message) from None
        except ValueError as error:
            raise MissingPictureError(str(error)) from None
        with errors_of(analysis):
            return picture.draw(*results, t)

    def document(self, analysis: Analysis) -> Any:
        """Return the result of an analysis as a JSON-serialisable dict; None without a result."""
        result = self.result(analysis)
        with errors_of(analysis):
            return None if result is None else result.document()
