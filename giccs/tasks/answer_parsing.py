"""Choices in the answers of chat models to multiple-choice questions. Nothing is guessed.

An answer chooses an option by its letter ("B", "(B)", "Answer: B."), by a letter with the text of its option
("B. Two of us."), by a letter alone in the first line with an explanation below, or by the text of an option,
alone or as the only option in quotation marks. Any other answer, one that names several options, and a
sentence with a negation or a contrast choose none. An explanation may compare the options; one that chooses
again or corrects the letter above makes the answer unparsable.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from giccs.benchmark.languages import base_language
from giccs.models.abilities import Response
from giccs.prompts import LETTERS

PARSER_VERSION = 2
"""Changes with the choices that are found in answers."""
OUTCOMES = {
    "answered": "choose an option",
    "refused": "are refusals",
    "cut": "were cut at the limit of tokens",
    "unparsable": "name no option, or several",
}
"""Outcome of an answer -> its description."""
INSTRUCTIONS = {
    "letter": {
        "de": "Antworten Sie nur mit dem Buchstaben der gewählten Äußerung.",
        "en": "Answer with the letter of the chosen utterance only.",
    },
    "sentence": {
        "de": "Antworten Sie nur mit dem Wortlaut der gewählten Äußerung.",
        "en": "Answer with the exact text of the chosen utterance only.",
    },
}
"""Kind of answer -> language of the prompt template -> instruction."""

TAG = r"(?:think|thinking|thought|reasoning)"
MARKUP = re.compile(r"\\(?:boxed|text)\b|[*`${}]")
LETTER = re.compile(r"(?:(?:antwort|answer)\s*:)?[\s(]*([A-Z])[\s).:]*", re.IGNORECASE)
LETTER_AND_TEXT = re.compile(r"[\s(]*([A-Z])[).:]\s*(.+)", re.DOTALL)
STATED = re.compile(
    r"\b(?:answer|antwort|option|choice|auswahl|letter|buchstabe|utterance|äußerung)"
    r"(?:\s+(?:is|ist|lautet))?\s*:?\s*[(\"'„“]?([A-Z])(?=[)\"'“”.:,;!?]|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
NEGATION = re.compile(
    r"\b(?:not|no|cannot|never|neither|nor|none|wrong|incorrect|unclear|but|wait|nicht|nein|kein\w*|weder"
    r"|falsch|unklar|aber)\b|n(?:'|’)t\b",
    re.IGNORECASE,
)
"""Words with which a sentence may exclude an option that it names; those in quotations do not count."""
CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|instead|sorry|mistake|on second thought|moment|doch|korrektur|eigentlich"
    r"|stattdessen|vielmehr|irrtum)\b",
    re.IGNORECASE,
)
"""Words with which an explanation may take back the letter above it."""
QUOTED = re.compile(r"\"([^\"]+)\"|„([^“”]+)[“”]|“([^”]+)”|«([^»]+)»|»([^«]+)«")
REFUSAL = re.compile(
    r"\b(?:I(?:'|’)?m sorry|I am sorry|I apologi[sz]e|I can(?:not|(?:'|’)t)|I(?:'|’| a)m (?:unable|not able)"
    r"|I won(?:'|’)t|as an AI|tut mir leid|entschuldig\w*|ich kann \w*\s*nicht|kann ich \w*\s*nicht"
    r"|als (?:ein )?KI)\b",
    re.IGNORECASE,
)


def instruction_for(
    answer: str,
    language: str | None,
    instructions: Mapping[str, Mapping[str, str]] = INSTRUCTIONS,
) -> str:
    """Return the instruction for answers by ``letter`` or ``sentence``; English for other languages.

    >>> instruction_for("letter", "de-AT")
    'Antworten Sie nur mit dem Buchstaben der gewählten Äußerung.'
    """
    by_language = instructions[answer]
    return by_language.get(base_language(language or "en"), by_language["en"])


def without_reasoning(text: str) -> str:
    """Return an answer without reasoning in tags; the beginning or the end of a tag may be missing.

    >>> [without_reasoning(text) for text in ("<think>A? No.</think>\\nB", "A?</think>B", "<think>A, B")]
    ['\\nB', 'B', '']
    """
    after = re.split(f"</{TAG}>", text, flags=re.IGNORECASE)[-1]
    return re.split(f"<{TAG}>", after, flags=re.IGNORECASE)[0]


def chosen_letter(answer: str, utterances: Sequence[str]) -> str:
    """Return the letter that an answer without reasoning chooses, or an empty string.

    utterances: texts of the options, in the order of their letters.

    >>> texts = ["A table for two?", "No."]
    >>> [chosen_letter(answer, texts) for answer in ("**b**", "Answer: B", "B) No.", "No.", "A table", "C")]
    ['B', 'B', 'B', 'B', '', '']
    >>> [chosen_letter(answer, texts) for answer in ("The answer is A.", "Option A. Or option B?", "B) no?")]
    ['A', '', 'B']
    >>> [chosen_letter(answer, texts) for answer in ("The answer isn't option B.", "Weder Option A noch B.")]
    ['', '']
    >>> [chosen_letter(answer, texts) for answer in ("B.\\n\\nA is a question.", "B\\nNo, wait: A.", "A\\nB")]
    ['B', '', '']
    """
    plain = MARKUP.sub("", answer).strip()
    text = " ".join(plain.split())
    letters = LETTERS[: len(utterances)]
    if match := LETTER.fullmatch(text):
        return match[1].upper() if match[1].upper() in letters else ""
    if own := _letter_of_text(text, utterances):
        return own
    match = LETTER_AND_TEXT.fullmatch(text)
    if match and (named := _letters_of_text(match[2], utterances)):
        return match[1] if match[1] in named else ""
    first, _, explanation = plain.partition("\n")
    if match := LETTER.fullmatch(first):
        letter = match[1].upper()
        return letter if letter in letters and _leaves(letter, explanation) else ""
    if NEGATION.search(QUOTED.sub("", text)):
        return ""
    stated = {letter for letter in STATED.findall(text) if letter.isupper()}
    quoted = {
        letter
        for groups in QUOTED.findall(text)
        if (letter := _letter_of_text("".join(groups), utterances))
    }
    (letter, *others) = stated | quoted or {""}
    return letter if not others and letter in letters else ""


def outcome_of(response: Response, utterances: Sequence[str]) -> tuple[str, str]:
    """Return (the chosen letter or an empty string, the outcome: a key of `OUTCOMES`).

    An answer that was cut chooses none, whatever it contains.

    >>> outcome_of(Response("<think>A?</think> B"), ["Yes.", "No."])
    ('B', 'answered')
    >>> responses = Response("A", "length"), Response("I can't say."), Response("")
    >>> [outcome_of(response, ["Yes."])[1] for response in responses]
    ['cut', 'refused', 'unparsable']
    """
    if response.end == "length":
        return "", "cut"
    if response.end == "refusal":
        return "", "refused"
    answer = without_reasoning(response.text)
    if letter := chosen_letter(answer, utterances):
        return letter, "answered"
    return "", "refused" if REFUSAL.search(answer) else "unparsable"


def _leaves(letter: str, explanation: str) -> bool:
    """Return whether an explanation below a letter neither chooses another option nor corrects itself."""
    stated = {other for other in STATED.findall(explanation) if other.isupper()}
    lone = any(LETTER.fullmatch(line) for line in explanation.splitlines() if line.strip())
    return stated <= {letter} and not lone and not CORRECTION.search(explanation)


def _letter_of_text(text: str, utterances: Sequence[str]) -> str:
    """Return the letter of the only option with a text, or an empty string."""
    letters = _letters_of_text(text, utterances)
    return letters[0] if len(letters) == 1 else ""


def _letters_of_text(text: str, utterances: Sequence[str]) -> list[str]:
    """Return the letters of the options with a text; punctuation counts only if it distinguishes them."""
    for form in (_spaced, _words):
        if not (wanted := form(text)):
            return []
        letters = [
            letter
            for letter, utterance in zip(LETTERS, utterances, strict=False)
            if form(utterance) == wanted
        ]
        if letters:
            return letters
    return []


def _spaced(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(MARKUP.sub("", text).split()))


def _words(text: str) -> str:
    return re.sub(r"[^\w\s]", "", _spaced(text)).casefold().strip()
