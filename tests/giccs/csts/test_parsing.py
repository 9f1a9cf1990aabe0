"""What models really write where a score is asked for, and the number that is read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giccs.csts.prompting import after_words, first_number

READ = {
    # as it should be
    "4.0": 4.0,
    "4": 4.0,
    " 3\n": 3.0,
    "2.5": 2.5,
    "The Answer is 2.0.": 2.0,  # C-STS, A.3
    "2.0.": 2.0,
    "5!": 5.0,
    "(4)": 4.0,
    "**4**": 4.0,
    '"3.0"': 3.0,
    "Score: 4.0/5": 4.0,
    "Output: 1.0": 1.0,
    "Similarity score = 3": 3.0,
    "I would rate it 4.": 4.0,
    "4.0 because both are dogs": 4.0,
    "3.0\nInput: Sentence 1: A dog. Sentence 2: A": 3.0,  # a base model that goes on with examples
    "\n\n2": 2.0,
    "3.14159": 3.14159,
    # more than one number: the first
    "4 out of 5": 4.0,
    "1-5": 1.0,
    "between 1 and 2": 1.0,
    "On a scale between 1 and 5, I would say 4": 1.0,
    "3 or 4": 3.0,
    "4/5": 4.0,
    "2.0.0": 2.0,
    "3,5": 3.0,
    "1,000": 1.0,
    "Sentence 1: A dog. Sentence 2": 1.0,  # it gives no score, and is read as 1
    # no sign, no per cent, no exponent, no number without a digit before the point
    "-2": 2.0,
    "minus 3": 3.0,
    "+4": 4.0,
    "80%": 80.0,
    "1e3": 1.0,
    ".5": 5.0,
    "4.": 4.0,
    "0x10": 0.0,
    "<pad>4</s>": 4.0,
    "T5 says 2": 5.0,
    # outside 1 to 5: it stays
    "0": 0.0,
    "0.0": 0.0,  # C-STS, Table 5
    "10": 10.0,
    "100": 100.0,
    "2023": 2023.0,
    # digits of other scripts
    "٤": 4.0,
    "３．５": 3.0,  # the point is another one too
    "४.५": 4.5,
}
INVALID = [
    "", " ", "\n", "four", "Four.", "very similar", "high", "yes", "None", "null", "N/A", "nan", "NaN",
    "inf", "-inf", "Infinity", "?", "...", "-", "²", "½", "Ⅳ", "④", "The sentences are not similar.",
]  # fmt: skip


@pytest.mark.parametrize(("answer", "value"), READ.items())
def test_the_first_number_is_read(answer, value):
    assert first_number(answer) == value


@pytest.mark.parametrize("answer", INVALID)
def test_without_a_number_an_answer_is_invalid(answer):
    assert first_number(answer) is None


def test_a_number_too_large_for_a_float_is_invalid():
    assert first_number("9" * 308) == float("9" * 308)
    assert first_number("9" * 309) is None


def test_numbers_after_words_are_told_apart():
    behind = {answer for answer in READ if after_words(answer)}
    assert {"Sentence 1: A dog. Sentence 2", "The Answer is 2.0.", "minus 3", "T5 says 2"} <= behind
    assert behind.isdisjoint(["4", " 3\n", "**4**", "4 out of 5", "-2", "٤", "0x10"])
    assert not any(map(after_words, INVALID))


@given(st.text())
def test_every_text_is_read_as_a_finite_number_or_not_at_all(answer):
    value = first_number(answer)
    assert value is None or (math.isfinite(value) and value >= 0)
    assert (value is None) == (not any(sign.isdecimal() for sign in answer))


@given(st.floats(0, 1e6).map(lambda value: f"{value:.3f}"), st.text("abc :;,\n*"))
def test_what_stands_around_a_number_does_not_matter(number, around):
    assert first_number(f"{around}{number}{around}") == float(number)
