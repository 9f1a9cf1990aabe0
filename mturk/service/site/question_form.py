"""QuestionForm XML as blocks and questions, and validation of submitted fields."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from mturk.answers import OTHER_SUFFIX
from mturk.question_form_schema import compile_format
from mturk.question_xml import local_name
from mturk.service.site.texts import text

log = logging.getLogger("mturk.site")
DEFAULT_MAX_CHARACTERS = 10_000
"""Maximum length of a free text if the form sets no limit."""
FORMAT_TIMEOUT_SECONDS = 1.0
"""Time after which an AnswerFormatRegex counts as satisfied, because it cannot be decided."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of content."""

    kind: str
    """title, text, list or image."""
    lines: tuple[str, ...]
    """Paragraphs, list items, or the description of an image."""
    address: str = ""
    """Address of an image."""


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """A pattern that an answer must contain (AnswerFormatRegex)."""

    pattern: str
    flags: str
    message: str
    """Text for the worker; empty: the default."""

    def matches(self, value: str) -> bool:
        """Return whether the value contains the pattern."""
        try:
            match = compile_format(self.pattern, self.flags).search(
                value.replace("\r\n", "\n"), timeout=FORMAT_TIMEOUT_SECONDS
            )
        except TimeoutError:
            log.warning("a pattern was not decided within %g s", FORMAT_TIMEOUT_SECONDS)
            return True
        return match is not None


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """A question of the form and the constraints on its answer."""

    identifier: str
    name: str
    """Name of the question in messages."""
    required: bool
    content: tuple[Block, ...]
    kind: str
    """text, number, one, many or file."""
    low: float = 0
    """Minimum number of characters, minimum value or minimum number of choices."""
    high: float = math.inf
    default: str = ""
    rows: int = 1
    choices: tuple[tuple[str, str], ...] = ()
    """(SelectionIdentifier, label) of each choice."""
    allows_other: bool = False
    """Whether there is a free-text option."""
    formats: tuple[AnswerFormat, ...] = ()
    lengths: tuple[float, float] = (0, math.inf)
    """Minimum and maximum number of characters of a number."""

    @property
    def bound_texts(self) -> dict[str, str]:
        """The bounds formatted for texts."""
        return {"low": f"{self.low:g}", "high": f"{self.high:g}"}


def read_form(root: Element) -> tuple[Block | FormQuestion, ...]:
    """Return a QuestionForm's blocks and questions in document order."""
    parts: list[Block | FormQuestion] = []
    for child in root:
        if local_name(child) == "Overview":
            parts += _content(child)
        elif local_name(child) == "Question":
            parts.append(_question(child, len(parts) + 1))
    return tuple(parts)


def _question(element: Element, number: int) -> FormQuestion:
    identifier = _text(element, "QuestionIdentifier")
    content = tuple(_content(_child(element, "QuestionContent")))
    content_lines = [block.lines[0] for block in content if block.kind != "image" and block.lines]
    name = _text(element, "DisplayName") or next(iter(content_lines), "") or str(number)
    required = _text(element, "IsRequired").lower() in ("true", "1")
    specification = _child(element, "AnswerSpecification")
    answer = next(iter(specification), None) if specification is not None else None
    start = (identifier, name, required, content)
    if answer is None or local_name(answer) not in ("FreeTextAnswer", "SelectionAnswer"):
        return FormQuestion(*start, kind="file")
    if local_name(answer) == "FreeTextAnswer":
        return _free_text(start, answer)
    return _selection(start, answer)


Start = tuple[str, str, bool, tuple[Block, ...]]


def _free_text(start: Start, answer: Element) -> FormQuestion:
    """Parse a free-text question; a minimum length makes it required, as on Mechanical Turk."""
    constraints = _child(answer, "Constraints")
    numeric, length_element = _child(constraints, "IsNumeric"), _child(constraints, "Length")
    default = _text(answer, "DefaultText")
    formats = tuple(
        AnswerFormat(e.get("regex", ""), e.get("flags", ""), e.get("errorText", ""))
        for e in (constraints if constraints is not None else ())
        if local_name(e) == "AnswerFormatRegex"
    )
    bounds = length_element.attrib if length_element is not None else {}
    shortest, longest = (
        _number(bounds.get("minLength"), 0),
        _number(bounds.get("maxLength"), math.inf),
    )
    identifier, name, required, content = start
    start = identifier, name, required or shortest > 0, content
    if numeric is not None:
        low = _number(numeric.get("minValue"), -math.inf)
        high = _number(numeric.get("maxValue"), math.inf)
        return FormQuestion(*start, kind="number", low=low, high=high, default=default,
                            formats=formats, lengths=(shortest, longest))  # fmt: skip
    return FormQuestion(
        *start, kind="text", low=shortest, high=longest if math.isfinite(longest) else DEFAULT_MAX_CHARACTERS,
        default=default, formats=formats,
        rows=int(min(20, max(1, _number(_text(answer, "NumberOfLinesSuggestion"), 1)))),
    )  # fmt: skip


def _selection(start: Start, answer: Element) -> FormQuestion:
    selections = _child(answer, "Selections")
    children = selections if selections is not None else ()
    choices = tuple(_choice(child) for child in children if local_name(child) == "Selection")
    most = _number(_text(answer, "MaxSelectionCount"), 1)
    fewest = _number(_text(answer, "MinSelectionCount"), 1 if start[2] else 0)
    return FormQuestion(
        *start, kind="one" if most <= 1 else "many", low=fewest, high=most, choices=choices,
        allows_other=_child(selections, "OtherSelection") is not None,
    )  # fmt: skip


def _choice(element: Element) -> tuple[str, str]:
    identifier = _text(element, "SelectionIdentifier")
    label = " ".join(line for block in _content(element) for line in block.lines)
    return identifier, label or identifier


def _content(element: Element | None) -> Iterator[Block]:
    for child in element if element is not None else ():
        kind, inside = local_name(child), child.text or ""
        if kind == "Title":
            yield Block("title", (inside.strip(),))
        elif kind == "Text":
            yield Block("text", _paragraphs(inside))
        elif kind == "FormattedContent":
            yield Block("text", _without_tags(inside))
        elif kind == "List":
            yield Block("list", tuple((item.text or "").strip() for item in child))
        elif kind in ("Binary", "EmbeddedBinary"):
            yield _image(child)


def _image(element: Element) -> Block:
    address = _text(element, "DataURL")
    safe_address = address if urlsplit(address).scheme in ("https", "data") else ""
    return Block("image", (_text(element, "AltText"),), safe_address)


def _paragraphs(inside: str) -> tuple[str, ...]:
    lines = (line.strip() for line in inside.splitlines())
    return tuple(line for line in lines if line)


class _TextExtractor(HTMLParser):
    """Extracts the text of formatted content; block elements separate paragraphs."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("p", "br", "li", "div", "tr", "h1", "h2", "h3", "h4", "h5", "h6"):
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.handle_starttag(tag, None)

    def handle_data(self, data: str) -> None:
        self.pieces.append(data.replace("\n", " "))


def _without_tags(inside: str) -> tuple[str, ...]:
    plain = _TextExtractor()
    plain.feed(inside)
    plain.close()
    return _paragraphs("".join(plain.pieces))


def find_problems(
    form: Sequence[Block | FormQuestion], fields: Sequence[tuple[str, str]], language: str
) -> list[str]:
    """Return the problems of the submitted fields, in the worker's language."""
    questions = (question for question in form if isinstance(question, FormQuestion))
    return [
        problem
        for question in questions
        for problem in _question_problems(question, fields, language)
    ]


def _question_problems(
    question: FormQuestion, fields: Sequence[tuple[str, str]], language: str
) -> Iterator[str]:
    values = [value for name, value in fields if name == question.identifier and value]
    other_values = [
        v for name, v in fields if name == question.identifier + OTHER_SUFFIX and v.strip()
    ]
    n_answers = len(values) + (len(other_values) if question.allows_other else 0)
    if not n_answers:
        if question.required or (question.kind in ("one", "many") and question.low > 0):
            yield text(language, "form.missing", name=question.name)
        return
    if question.kind == "number" and not _is_within(question, values[0]):
        yield text(
            language, "form.number", name=question.name, low=question.low, high=question.high
        )
    elif question.kind in ("text", "number"):
        is_text = question.kind == "text"
        low, high = (question.low, question.high) if is_text else question.lengths
        n = len(values[0])
        if not low <= n <= high:
            yield text(language, "form.short", name=question.name, n=n, low=low, high=high)
        for answer_format in question.formats:
            if not answer_format.matches(values[0]):
                message = answer_format.message or text(language, "form.format")
                yield f"{question.name}: {message}"
    elif question.kind in ("one", "many"):
        if not question.low <= n_answers <= question.high:
            yield text(
                language,
                "form.selections",
                name=question.name,
                n=n_answers,
                low=question.low,
                high=question.high,
            )
        if not set(values) <= {identifier for identifier, _ in question.choices}:
            yield text(language, "form.foreign", name=question.name)


def _is_within(question: FormQuestion, value: str) -> bool:
    return question.low <= _number(value, math.nan) <= question.high


def _number(raw: str | None, default: float) -> float:
    """Return a finite number; the default if absent or invalid."""
    try:
        value = float(raw) if raw else default
    except ValueError:
        return default
    return value if math.isfinite(value) else default


def _child(element: Element | None, name: str) -> Element | None:
    children = element if element is not None else ()
    return next((child for child in children if local_name(child) == name), None)


def _text(element: Element | None, name: str) -> str:
    child = _child(element, name)
    return (child.text or "").strip() if child is not None else ""
