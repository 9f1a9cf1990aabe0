"""A QuestionForm in plain terms: what it says, what it asks, and whether fields answer it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from mturk.question_xml import local_name
from mturk.service.site.texts import text

__all__ = ["Block", "FormQuestion", "problems", "read_form"]

ENDLESS = 10_000
"""Characters that a free text may have where the form sets no limit."""
OTHER = "-other"
"""What the name of the field for an answer of one's own adds to the question's identifier."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of content."""

    kind: str
    """title, text, list or image."""
    lines: tuple[str, ...]
    """Paragraphs, list items, or the image's description."""
    address: str = ""
    """The image's."""


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """One question of the form and what is an answer to it."""

    identifier: str
    name: str
    """What messages call it."""
    required: bool
    content: tuple[Block, ...]
    kind: str
    """text, number, one, many or file."""
    low: float = 0
    """Fewest characters, smallest number or fewest choices."""
    high: float = math.inf
    default: str = ""
    rows: int = 1
    choices: tuple[tuple[str, str], ...] = ()
    """(SelectionIdentifier, what it reads) of each."""
    other: bool = False
    """Whether an answer of one's own is allowed."""

    @property
    def numbers(self) -> dict[str, str]:
        """The bounds as texts write them."""
        return {"low": f"{self.low:g}", "high": f"{self.high:g}"}


def read_form(root: Element) -> tuple[Block | FormQuestion, ...]:
    """Return a QuestionForm's contents in their order."""
    found: list[Block | FormQuestion] = []
    for child in root:
        if local_name(child) == "Overview":
            found += _content(child)
        elif local_name(child) == "Question":
            found.append(_question(child, len(found) + 1))
    return tuple(found)


def _question(element: Element, number: int) -> FormQuestion:
    identifier = _text(element, "QuestionIdentifier")
    content = tuple(_content(_child(element, "QuestionContent")))
    named = [block.lines[0] for block in content if block.kind != "image" and block.lines]
    name = _text(element, "DisplayName") or next(iter(named), "") or str(number)
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
    """Read a free text. A pattern (AnswerFormatRegex) is the requester's to check, not run here."""
    constraints = _child(answer, "Constraints")
    numeric, length = _child(constraints, "IsNumeric"), _child(constraints, "Length")
    default = _text(answer, "DefaultText")
    if numeric is not None:
        low = _number(numeric.get("minValue"), -math.inf)
        high = _number(numeric.get("maxValue"), math.inf)
        return FormQuestion(*start, kind="number", low=low, high=high, default=default)
    bounds = length.attrib if length is not None else {}
    return FormQuestion(
        *start, kind="text", low=_number(bounds.get("minLength"), 0),
        high=_number(bounds.get("maxLength"), ENDLESS), default=default,
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
        other=_child(selections, "OtherSelection") is not None,
    )  # fmt: skip


def _choice(element: Element) -> tuple[str, str]:
    identifier = _text(element, "SelectionIdentifier")
    shown = " ".join(line for block in _content(element) for line in block.lines)
    return identifier, shown or identifier


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
    shown = address if urlsplit(address).scheme in ("https", "data") else ""
    return Block("image", (_text(element, "AltText"),), shown)


def _paragraphs(inside: str) -> tuple[str, ...]:
    lines = (line.strip() for line in inside.splitlines())
    return tuple(line for line in lines if line)


class _Plain(HTMLParser):
    """The text of formatted content; blocks part paragraphs."""

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
    plain = _Plain()
    plain.feed(inside)
    plain.close()
    return _paragraphs("".join(plain.pieces))


def problems(
    form: Sequence[Block | FormQuestion], fields: Sequence[tuple[str, str]], language: str
) -> list[str]:
    """Return what keeps the fields from answering the form, in the worker's language."""
    questions = (question for question in form if isinstance(question, FormQuestion))
    return [problem for question in questions for problem in _wrong(question, fields, language)]


def _wrong(
    question: FormQuestion, fields: Sequence[tuple[str, str]], language: str
) -> Iterator[str]:
    values = [value for name, value in fields if name == question.identifier and value]
    own = [v for name, v in fields if name == question.identifier + OTHER and v.strip()]
    given = len(values) + (len(own) if question.other else 0)
    if not given:
        if question.required or (question.kind in ("one", "many") and question.low > 0):
            yield text(language, "form.missing", name=question.name)
        return
    if question.kind == "number" and not _within(question, values[0]):
        yield text(language, "form.number", name=question.name, **question.numbers)
    elif question.kind == "text" and not question.low <= len(values[0]) <= question.high:
        n = len(values[0])
        yield text(language, "form.short", name=question.name, n=n, **question.numbers)
    elif question.kind in ("one", "many"):
        if not question.low <= given <= question.high:
            yield text(language, "form.selections", name=question.name, n=given, **question.numbers)
        if not set(values) <= {identifier for identifier, _ in question.choices}:
            yield text(language, "form.foreign", name=question.name)


def _within(question: FormQuestion, value: str) -> bool:
    return question.low <= _number(value, math.nan) <= question.high


def _number(given: str | None, otherwise: float) -> float:
    """Return a number; what is not one counts as not given."""
    try:
        value = float(given) if given else otherwise
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise


def _child(element: Element | None, name: str) -> Element | None:
    children = element if element is not None else ()
    return next((child for child in children if local_name(child) == name), None)


def _text(element: Element | None, name: str) -> str:
    child = _child(element, name)
    return (child.text or "").strip() if child is not None else ""
