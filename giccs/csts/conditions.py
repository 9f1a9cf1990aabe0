"""What do conditions ask about: which feature, of which entity?  (L-CSTS, 3.1 and Figure 2.)

The paper says that most conditions are "[feature] of [entity]" or a lone "[entity]", and that a lone entity
is counted under the feature *type*. How it found the parts it does not say. Chosen here, on purpose as rules
that can be read:

1. Lower case, without punctuation (the paper's footnote 4 drops case and the full stop).
2. With "of": what stands before the first "of" is the feature, what follows is the entity.
3. Without: a possessive ("the people's demeanor") is its "of" form, since it names a feature. So is a
   compound that ends in a feature which the paper itself names ("room type"; `NAMED`).
4. One of those features alone ("the number") is a feature without an entity; all others are a lone entity,
   whose feature is *type*.
5. A part is counted by its head (`head`). So "the main colors of the two dogs in the yard" is *color*
   of *dog*, and "the number of pieces of cake" is *number* of *piece*. Synonyms (color and colour, kind and
   type) are not brought together.

The head of a noun phrase is found by rules that can be read; there is no parser and no word list to install.
The phrase goes from its first word that is no article to the first word that ends it: a preposition, a
conjunction, a relative, an article further on, a participle. Its last word is the head.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from giccs.description.figures import BLUE

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "MAX_LISTED_ROWS",
    "Analysis",
    "Count",
    "analyse",
    "frequent_parts",
    "head",
    "parse",
    "singular",
]

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

TYPE = "type"
"""The feature of a condition that names none."""
NAMED_FEATURES = frozenset(
    ["age", "amount", "color", "colour", "gender", "number", "shape", "size", TYPE]
)
"""The features that L-CSTS names in its section 3 and Table 3; British spelling added."""
FORMS = ("of", "possessive", "compound", "feature", "singleton")
MAX_LISTED_ROWS = 10
"""How many features and entities Figure 2 shows."""


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
    start = next((index for index, word in enumerate(words) if word not in ARTICLES), len(words))
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


@dataclass(frozen=True, slots=True)
class Condition:
    """The parts of a condition, by their heads."""

    form: str
    """``of``, ``possessive``, ``compound``, ``feature`` (without an entity) or ``singleton``."""
    feature: str
    entity: str
    """Empty where none is named."""


@dataclass(frozen=True, slots=True)
class Count:
    """How often a feature or an entity is asked about."""

    name: str
    count: int
    share: float
    """Of all conditions that have words, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the conditions of a data set ask about; a condition counts once a row."""

    total: int
    """Conditions that have words."""
    empty: int
    """Conditions without; they count nowhere else."""
    different: int
    """How many different combinations of form, feature and entity there are."""
    forms: dict[str, int]
    """How many conditions have each form, in the order of `FORMS`."""
    features: tuple[Count, ...]
    """Falling; equal counts by name."""
    entities: tuple[Count, ...]


def parse(text: str) -> Condition | None:
    """Return the parts of a condition; None where it has no words.

    >>> parse("The color of the animals.")
    Condition(form='of', feature='color', entity='animal')
    >>> parse("the people's demeanor")
    Condition(form='possessive', feature='demeanor', entity='people')
    >>> parse("Room type")
    Condition(form='compound', feature='type', entity='room')
    >>> parse("The sport being played")
    Condition(form='singleton', feature='type', entity='sport')
    """
    words = words_of(text)
    return _of(words) or _without_of(noun_phrase(words))


def analyse(conditions: Iterable[str]) -> Analysis:
    """Count features and entities; raise ValueError where no condition has words."""
    texts = Counter(conditions)
    condition_counts: Counter[Condition] = Counter()
    for text, count in texts.items():
        if parsed := parse(text):
            condition_counts[parsed] += count
    total = condition_counts.total()
    if not total:
        raise ValueError("there are no conditions with words")
    forms = _summed((condition.form, count) for condition, count in condition_counts.items())
    features = _summed((condition.feature, count) for condition, count in condition_counts.items())
    entities = _summed(
        (condition.entity, count)
        for condition, count in condition_counts.items()
        if condition.entity
    )
    return Analysis(
        total=total,
        empty=texts.total() - total,
        different=len(condition_counts),
        forms={form: forms[form] for form in FORMS},
        features=_ranked(features, total),
        entities=_ranked(entities, total),
    )


def frequent_parts(analysis: Analysis, top: int = MAX_LISTED_ROWS) -> alt.HConcatChart:
    """Return Figure 2 of L-CSTS: the `top` most frequent features, and beside them the entities."""
    import altair as alt

    chart: alt.HConcatChart = alt.hconcat(
        _bars("feature", analysis.features[:top]), _bars("entity", analysis.entities[:top])
    )
    return chart


def _of(words: Sequence[str]) -> Condition | None:
    """Return the parts around the first "of"; None where one of them is missing."""
    if "of" not in words[1:-1]:
        return None
    index = words.index("of", 1)
    feature, entity = head(words[:index]), head(words[index + 1 :])
    return Condition("of", feature, entity) if feature and entity else None


def _without_of(phrase: Sequence[str]) -> Condition | None:
    if not phrase:
        return None
    owners = (index for index, word in enumerate(phrase[:-1]) if word.endswith(("'s", "s'")))
    if (owner := next(owners, None)) is not None:
        return Condition("possessive", head(phrase[owner + 1 :]), head(phrase[: owner + 1]))
    if (last := singular(phrase[-1])) in NAMED_FEATURES:
        entity = head(phrase[:-1])
        return Condition("compound" if entity else "feature", last, entity)
    return Condition("singleton", TYPE, head(phrase))


def _summed(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    summed: Counter[str] = Counter()
    for name, count in counts:
        summed[name] += count
    return summed


def _ranked(counts: Counter[str], total: int) -> tuple[Count, ...]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(Count(name, count, count / total) for name, count in ranked)


def _bars(title: str, counts: Sequence[Count]) -> alt.Chart:
    import altair as alt

    rows = [
        {
            "name": feature_count.name,
            "conditions": feature_count.count,
            "share": feature_count.share,
        }
        for feature_count in counts
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("share:Q", title="share of conditions", axis=alt.Axis(format="%")),
            y=alt.Y("name:N", title=title, sort=None),
            tooltip=["name:N", "conditions:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=220, height=22 * len(rows))
    )
    return chart
