"""The schema of QuestionForm XML: order and number of elements, values, and unique identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import regex

from mturk.question_xml import Question, QuestionForm, local_name, read_question

CONTENT = "((Title|Text|List|Binary|EmbeddedBinary|FormattedContent) )+"
FREE_TEXT = "(Constraints )?(DefaultText )?(NumberOfLinesSuggestion )?"
CHILDREN = {
    "QuestionForm": "(Overview )*Question ((Overview|Question) )*",
    "Overview": CONTENT,
    "Question": "QuestionIdentifier (DisplayName )?(IsRequired )?QuestionContent AnswerSpecification ",
    "QuestionContent": CONTENT,
    "List": "(ListItem )+",
    "Binary": "MimeType DataURL AltText ",
    "MimeType": "Type (SubType )?",
    "EmbeddedBinary": "EmbeddedMimeType DataURL AltText Width Height (ApplicationParameter )*",
    "EmbeddedMimeType": "Type (SubType )?",
    "ApplicationParameter": "Name Value ",
    "AnswerSpecification": "(FreeTextAnswer|SelectionAnswer|FileUploadAnswer) ",
    "FreeTextAnswer": FREE_TEXT,
    "Constraints": "(IsNumeric )?(Length )?(AnswerFormatRegex )*",
    "SelectionAnswer": "(MinSelectionCount )?(MaxSelectionCount )?(StyleSuggestion )?Selections ",
    "Selections": "(Selection )+(OtherSelection )?",
    "Selection": "SelectionIdentifier (Text|FormattedContent|Binary) ",
    "OtherSelection": FREE_TEXT,
    "FileUploadAnswer": "((MaxFileSizeInBytes|MinFileSizeInBytes) ){1,2}",
}
"""Regular expressions of the names of an element's children, each with a space; others have text only."""
VALUES = {
    "QuestionIdentifier": r"(?s).+",
    "SelectionIdentifier": r"(?s).+",
    "IsRequired": "true|false|1|0",
    "MinSelectionCount": "[0-9]{1,9}",
    "MaxSelectionCount": "[1-9][0-9]{0,8}",
    "StyleSuggestion": "radiobutton|dropdown|checkbox|list|combobox|multichooser",
    "NumberOfLinesSuggestion": "[1-9][0-9]{0,8}",
    "Type": "image|audio|video",
}
ATTRIBUTES = {
    "IsNumeric": {"minValue": "-?[0-9]{1,18}", "maxValue": "-?[0-9]{1,18}"},
    "Length": {"minLength": "[0-9]{1,9}", "maxLength": "[1-9][0-9]{0,8}"},
    "AnswerFormatRegex": {"regex": "(?s).*", "errorText": "(?s).*", "flags": "i?"},
}


def check_question(question_xml: str) -> Question:
    """Parse question XML of a request; ValueError if it is invalid or violates the schema of its form."""
    question = read_question(question_xml)
    if isinstance(question, QuestionForm) and (problems := form_problems(question.root)):
        raise ValueError("; ".join(problems[:20]))
    return question


def form_problems(root: Element) -> list[str]:
    """Return the violations of the schema of QuestionForm; empty if the form is valid.

    >>> from xml.etree.ElementTree import XML
    >>> form_problems(XML("<QuestionForm><Question/></QuestionForm>"))[0][:44]
    'Question contains nothing; expected Question'
    """
    namespace = root.tag.rpartition("}")[0]
    problems = [line for element in root.iter() for line in _element_problems(element, namespace)]
    questions = list(_descendants(root, "Question"))
    problems += _repeated(questions, "QuestionIdentifier")
    for question in questions:
        problems += _repeated(list(_descendants(question, "Selection")), "SelectionIdentifier")
        for answer in _descendants(question, "SelectionAnswer"):
            problems += _count_problems(answer)
    return problems


def compile_format(pattern: str, flags: str) -> regex.Pattern[str]:
    """Return the compiled pattern of an AnswerFormatRegex; ValueError if it is invalid.

    Its classes are those of JavaScript: ``\\d`` and ``\\w`` are ASCII.
    """
    try:
        return regex.compile(pattern, regex.ASCII | (regex.IGNORECASE if flags else 0))
    except regex.error as error:
        raise ValueError(f"AnswerFormatRegex: regex is {pattern!r}: {error}") from None


def _element_problems(element: Element, namespace: str) -> Iterator[str]:
    name, text = local_name(element), (element.text or "").strip()
    children = "".join(f"{local_name(child)} " for child in element)
    model, value = CHILDREN.get(name, ""), VALUES.get(name)
    if element.tag.rpartition("}")[0] != namespace:
        yield f"{name} has another namespace than its form"
    if not re.fullmatch(model, children):
        expected = model.replace(" )", ")").strip() or "text"
        yield f"{name} contains {children.strip() or 'nothing'}; expected {expected}"
    if model and (text or any((child.tail or "").strip() for child in element)):
        yield f"{name} contains text; expected elements"
    if value and not re.fullmatch(value, text):
        yield f"{name} is {text[:100]!r}; expected {value.removeprefix('(?s)')}"
    yield from _attribute_problems(element, name)


def _attribute_problems(element: Element, name: str) -> Iterator[str]:
    allowed = ATTRIBUTES.get(name, {})
    for attribute, text in element.attrib.items():
        if attribute not in allowed:
            yield f"{name} has the unknown attribute {attribute}"
        elif not re.fullmatch(allowed[attribute], text):
            yield f"{name}: {attribute} is {text[:100]!r}; expected {allowed[attribute]}"
    if name == "AnswerFormatRegex":
        try:
            compile_format(element.attrib["regex"], element.get("flags", ""))
        except KeyError:
            yield "AnswerFormatRegex has no attribute regex"
        except ValueError as error:
            yield str(error)


def _count_problems(answer: Element) -> Iterator[str]:
    """Return the problems of the numbers of selections, which are 1 unless given."""
    n_choices = sum(
        1 for name in ("Selection", "OtherSelection") for _ in _descendants(answer, name)
    )
    low, high = (_count(answer, f"{bound}SelectionCount") for bound in ("Min", "Max"))
    if max(low, high) > n_choices:
        yield f"{max(low, high)} selections are expected, but there are {n_choices}"
    if low > high:
        yield f"MinSelectionCount is {low}; expected at most MaxSelectionCount ({high})"


def _count(answer: Element, name: str) -> int:
    text = next(((element.text or "").strip() for element in _descendants(answer, name)), "1")
    return int(text) if re.fullmatch(VALUES[name], text) else 1


def _repeated(elements: list[Element], name: str) -> Iterator[str]:
    texts = [
        (child.text or "").strip()
        for element in elements
        for child in element
        if local_name(child) == name
    ]
    for text in dict.fromkeys(text for text in texts if texts.count(text) > 1):
        yield f"{name} {text!r} occurs {texts.count(text)} times; expected once"


def _descendants(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element.iter() if local_name(child) == name)
