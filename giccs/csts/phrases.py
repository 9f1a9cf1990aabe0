"""What is the head of an English noun phrase?  (Rules that can be read; no parser, no word lists to install.)

The phrase goes from its first word that is no article to the first word that ends it: a preposition, a
conjunction, a relative, an article further on, a participle. Its last word is the head.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["head", "noun_phrase", "singular", "words_of"]

_ARTICLES = "a an the his her its their this that these those"
_ENDS = """
about above across after against along among and around as at before behind being below beneath beside
between but by can does during for from has have how if in inside into is are was were like near next of off
on onto or out outside over per than that through to toward towards under until up upon used versus via what
when where which while who whom whose with within without
done driven drawn eaten given held kept made ridden seen shown sold taken thrown worn
"""
_NOT_PARTICIPLES = """
bedding building ceiling clothing covering drawing dwelling evening feeling flooring lighting marking meaning
morning painting parking railing seating setting sibling spring string surrounding swing thing topping wedding
breed moped speed
"""
ARTICLES = frozenset(_ARTICLES.split())
ENDS = frozenset(_ENDS.split())
NOT_PARTICIPLES = frozenset(_NOT_PARTICIPLES.split())
SINGULAR = {
    "buses": "bus", "calves": "calf", "children": "child", "feet": "foot", "geese": "goose",
    "halves": "half", "knives": "knife", "leaves": "leaf", "lives": "life", "loaves": "loaf",
    "men": "man", "mice": "mouse", "scarves": "scarf", "shelves": "shelf", "shoes": "shoe",
    "teeth": "tooth", "toes": "toe", "wives": "wife", "wolves": "wolf", "women": "woman",
}  # fmt: skip
UNCHANGED = frozenset(
    ["clothes", "goods", "lens", "means", "series", "skis", "species", "surroundings"]
)
ENDS_IN_IE = frozenset(["brownies", "cookies", "hoodies", "movies", "selfies", "smoothies"])


def words_of(text: str) -> list[str]:
    """Return the words in lower case: letters and digits, with the hyphens and apostrophes in them.

    >>> words_of("The T-shirt of the dog’s owner.")
    ['the', 't-shirt', 'of', 'the', "dog's", 'owner']
    """
    return re.findall(r"\w+(?:[-']\w+)*'?", text.lower().replace("’", "'"))


def noun_phrase(words: Sequence[str]) -> list[str]:
    """Return the noun phrase with which the words begin, without its articles.

    >>> noun_phrase("the tall man wearing a hat".split())
    ['tall', 'man']
    """
    start = next((place for place, word in enumerate(words) if word not in ARTICLES), len(words))
    phrase: list[str] = []
    for word in words[start:]:
        if phrase and (word in ENDS or word in ARTICLES or _is_participle(word)):
            break
        phrase.append(word)
    return phrase


def head(words: Sequence[str]) -> str:
    """Return the head of the noun phrase with which the words begin, in the singular; empty without one.

    >>> head("the two dogs in the yard".split())
    'dog'
    """
    phrase = noun_phrase(words)
    return singular(re.sub(r"'s?$", "", phrase[-1])) if phrase else ""


def singular(word: str) -> str:
    """Return a noun's singular by the rules of English spelling.

    >>> [singular(word) for word in ("animals", "buses", "dishes", "parties", "people", "tennis")]
    ['animal', 'bus', 'dish', 'party', 'people', 'tennis']
    """
    if word in SINGULAR:
        return SINGULAR[word]
    if word in UNCHANGED or len(word) < 4 or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-1] if word in ENDS_IN_IE or len(word) == 4 else word[:-3] + "y"
    if word.endswith(("sses", "xes", "zzes", "ches", "shes", "oes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]


def _is_participle(word: str) -> bool:
    """Tell "riding" and "parked" from "ring", "sheds" and the nouns of the list."""
    return word.endswith(("ing", "ed")) and len(word) > 4 and word not in NOT_PARTICIPLES
