"""Analysis of conditions: the feature and the entity that each condition names (L-CSTS, 3.1 and Figure 2).

The paper says that most conditions are "[feature] of [entity]" or a single "[entity]", and that a single
entity is counted under the feature *type*. It does not say how it found these parts. This module uses the
following explicit rules:

1. Case and punctuation are ignored (the paper's footnote 4 removes case and the full stop).
2. In a condition with "of", the text before the first "of" is the feature and the text after it the entity.
3. A possessive without "of" ("the people's demeanor") is treated as its "of" form, since it names a feature.
   So is a compound that ends in a feature named in the paper ("room type"; `NAMED_FEATURES`).
4. One of those features alone ("the number") is a feature without an entity. All other conditions are a
   single entity with the feature *type*.
5. A part is counted by its head (`head`). For example, "the main colors of the two dogs in the yard" is
   *color* of *dog*, and "the number of pieces of cake" is *number* of *piece*. Synonyms (color and colour,
   kind and type) are not merged.

The head of a noun phrase is found by rules, without a parser or a word list to install. The phrase starts at
the first word that is not an article. It ends before the next preposition, conjunction, relative pronoun,
article or participle. Its last word is the head.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bws.base.charts import BLUE, chart_rows

if TYPE_CHECKING:
    import altair as alt

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
"""The features named in section 3 and Table 3 of L-CSTS, with British spelling added."""
FORMS = ("of", "possessive", "compound", "feature", "singleton")
MAX_LISTED_ROWS = 10
"""Number of features and entities in Figure 2."""


def words_of(text: str) -> list[str]:
    """Return the words in lower case: letters and digits, with internal hyphens and apostrophes.

    >>> words_of("The T-shirt of the dog’s owner.")
    ['the', 't-shirt', 'of', 'the', "dog's", 'owner']
    """
    return re.findall(r"\w+(?:[-']\w+)*'?", text.lower().replace("’", "'"))


def noun_phrase(words: Sequence[str]) -> list[str]:
    """Return the noun phrase at the start of the words, without its articles.

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
    """Return the singular head of the noun phrase at the start of the words, or an empty string.

    >>> head("the two dogs in the yard".split())
    'dog'
    """
    phrase = noun_phrase(words)
    return singular(re.sub(r"'s?$", "", phrase[-1])) if phrase else ""


def singular(word: str) -> str:
    """Return the singular of a noun by the rules of English spelling.

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
    """Return whether a word is a participle ("riding", "parked") and not a noun such as "ring" or "sheds"."""
    return word.endswith(("ing", "ed")) and len(word) > 4 and word not in NOT_PARTICIPLES


@dataclass(frozen=True, slots=True)
class Condition:
    """The parts of a condition, reduced to their heads."""

    form: str
    """``of``, ``possessive``, ``compound``, ``feature`` (without an entity) or ``singleton``."""
    feature: str
    entity: str
    """Empty if the condition names no entity."""


@dataclass(frozen=True, slots=True)
class Count:
    """Frequency of a feature or an entity."""

    name: str
    count: int
    share: float
    """Share of all conditions with words, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Frequencies of features and entities in the conditions of a data set; each row counts once."""

    total: int
    """Number of conditions with words."""
    empty: int
    """Number of conditions without words, which are counted nowhere else."""
    different: int
    """Number of distinct combinations of form, feature and entity."""
    forms: dict[str, int]
    """Number of conditions of each form, in the order of `FORMS`."""
    features: tuple[Count, ...]
    """In descending order; ties by name."""
    entities: tuple[Count, ...]


def parse(text: str) -> Condition | None:
    """Return the parts of a condition, or None if it has no words.

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
    """Count features and entities; raise ValueError if no condition has words."""
    texts = Counter(conditions)
    condition_counts: Counter[Condition] = Counter()
    for text, count in texts.items():
        if parsed := parse(text):
            condition_counts[parsed] += count
    total = condition_counts.total()
    if not total:
        raise ValueError("no condition has words")
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
    """Return the parts before and after the first "of", or None if one is missing."""
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
        alt.Chart(chart_rows(rows))
        .mark_bar(color=BLUE)
        .encode(
            x=alt.X("share:Q", title="share of conditions", axis=alt.Axis(format="%")),
            y=alt.Y("name:N", title=title, sort=None),
            tooltip=["name:N", "conditions:Q", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(width=220, height=22 * len(rows))
    )
    return chart
