"""README.md of a published data set: the card that the hub shows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bws.tables import tabulated
from giccs.benchmark.terms import HUMAN_TAG, SIMULATED_TAG
from giccs.description.card.facts import DATA, JUDGMENTS, Section
from giccs.description.card.stated import QUESTIONS, Stated
from giccs.description.card.tables import PublishedTable

__all__ = ["MARK", "Card", "readme"]

MARK = "<!-- Written by giccs-card: change card.toml and write it again; changes here get lost. -->"
UNTITLED = "Conversational STS benchmark"
NOT_STATED = "*Not stated.*"
SIZES = {1e3: "n<1K", 1e4: "1K<n<10K", 1e5: "10K<n<100K", 1e6: "100K<n<1M", 1e7: "1M<n<10M"}
WARNING = (
    "> **Simulated.** The judgments behind the scores come from a program, not from people. A correlation "
    "with these scores says nothing about how people judge similarity."
)
DEPENDENCE = (
    "The items of a dialogue share its last turn: they are not independent. "
    "Intervals are over dialogues."
)

MARKDOWN_ANYWHERE = re.compile(r"([\\`*_{}\[\]|~$])")
MARKDOWN_AT_START = re.compile(r"^(?=[#+\-=:!])|^(\d+)(?=[.)](?:\s|$))")
FENCE = re.compile(r"^\s*(`{3,})", re.M)


@dataclass(frozen=True)
class Card:
    """All that the card says."""

    stated: Stated
    simulated: bool | None
    tables: tuple[PublishedTable, ...]
    sections: tuple[Section, ...]
    how_judged: str
    """A sentence; empty where the judgments are not published."""
    fingerprint: str
    version: str
    """Of the program."""

    @property
    def title(self) -> str:
        """Name of the data set, and whether it is simulated."""
        title = self.stated.text("title") or UNTITLED
        return f"{title} ({SIMULATED_TAG})" if self.simulated else title

    @property
    def description(self) -> str:
        """What it is."""
        said = self.stated.text("description") or (
            "Pairs of utterances in a dialogue, the last turn and another one, with how similar they are."
        )
        return f"Simulated annotations: {said}" if self.simulated else said

    @property
    def not_stated(self) -> list[str]:
        """Keys of card.toml without an answer."""
        missing = self.stated.missing
        return [key for key in missing if key != "simulated" or self.simulated is None]

    @property
    def tags(self) -> list[str]:
        """Keywords."""
        own = ["semantic textual similarity", "dialogue", "best-worst scaling"]
        if self.simulated is None:
            return own
        return [*own, "simulated", SIMULATED_TAG] if self.simulated else [*own, HUMAN_TAG]


def readme(card: Card) -> str:
    """Return the card: YAML that the hub reads, then Markdown that people read."""
    parts = [
        f"---\n{_front_matter(card)}---",
        MARK,
        f"# {_escaped(card.title)}",
        *([WARNING] if card.simulated else []),
        card.stated.text("description") or NOT_STATED,
        *_contents(card),
        *_numbers(card),
        *_about(card),
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(card: Card) -> str:
    from huggingface_hub import DatasetCardData

    stated, items = card.stated, card.tables[0].frame
    fields = DatasetCardData(
        language=list(stated.texts("language")) or None,
        license=stated.text("license") or None,
        pretty_name=card.title if stated.text("title") else None,
        task_categories=["sentence-similarity"],
        size_categories=[next(size for top, size in SIZES.items() if items.height < top)],
        annotations_creators=["machine-generated"] if card.simulated else None,
        tags=card.tags,
        configs=[
            {
                "config_name": one.config,
                "data_files": [{"split": "test", "path": one.path}],
                **({"default": True} if one is card.tables[0] else {}),
            }
            for one in card.tables
        ],
        license_link=stated.text("license_link") or None,
    )
    return fields.to_yaml() + "\n"


def _contents(card: Card) -> Iterator[str]:
    yield "## What is in it"
    rows = [
        (f"`{one.config}`", f"`{one.path}`", str(one.frame.height), _escaped(one.about))
        for one in card.tables
    ]
    yield tabulated(rows, ("configuration", "file", "rows", "what"), "markdown")
    load = 'load_dataset("FOLDER OR HUB ID", split="test")'
    yield _fenced(f"from datasets import load_dataset\n\nitems = {load}", "python")
    for one in card.tables:
        columns = [(f"`{name}`", _escaped(one.about_column(name))) for name in one.frame.columns]
        yield f"Columns of `{one.config}`:"
        yield tabulated(columns, ("column", "what"), "markdown")
    first = json.dumps(card.tables[0].frame.row(0, named=True), ensure_ascii=False, indent=2)
    yield "The first item:"
    yield _fenced(first, "json")


def _numbers(card: Card) -> Iterator[str]:
    yield "## How the scores were made"
    yield card.how_judged or NOT_STATED
    yield "## The numbers"
    yield (
        "Each table stands below the command that prints it; these are commands of giccs. They read files "
        "made of the published ones:"
    )
    yield _fenced(_files(card.tables), "python")
    for section in card.sections:
        yield f"### {section.title}"
        yield _fenced(section.command, "console")
        rows = [[_escaped(cell) for cell in row] for row in section.rows]
        if rows:
            yield tabulated(rows, [_escaped(name) for name in section.headers], "markdown")
        if section.notes:
            yield "\n".join(f"- {_escaped(note)}" for note in section.notes)


def _files(tables: Sequence[PublishedTable]) -> str:
    written = {"default": f'write_ndjson("{DATA}")', "judgments": f'write_csv("{JUDGMENTS}")'}
    lines = [
        f'polars.read_parquet("{one.path}").{written[one.config]}'
        for one in tables
        if one.config in written
    ]
    return "\n".join(["import polars\n", *lines])


def _about(card: Card) -> Iterator[str]:
    stated = card.stated
    for heading, key in (
        ("Where the dialogues come from", "source"),
        ("Who judged", "annotators"),
        ("Intended use", "intended_use"),
    ):
        yield f"## {heading}"
        yield stated.text(key) or NOT_STATED
    yield "## Limits"
    yield DEPENDENCE
    yield stated.text("limits") or "Further limits: not stated."
    yield "## Personal data"
    yield stated.text("personal_data") or NOT_STATED
    if any(published.config == "judgments" for published in card.tables):
        yield (
            "The annotators' comments, times and assignments are not published, nor ids of theirs that "
            "look like those of Mechanical Turk or Prolific."
        )
    yield "## Licence"
    yield _licence(stated)
    yield "## Citation"
    yield _fenced(stated.text("citation")) if stated.text("citation") else NOT_STATED
    yield from _provenance(card)


def _licence(stated: Stated) -> str:
    name, link = stated.text("license"), stated.text("license_link")
    if not name:
        return f"{NOT_STATED} Without a licence nobody may use the data."
    return f"[{_escaped(name)}](<{link}>)" if link else _escaped(name)


def _provenance(card: Card) -> Iterator[str]:
    stated = card.stated
    known = {
        "Authors": ", ".join(map(_escaped, stated.texts("authors"))),
        "Homepage": f"<{stated.text('homepage')}>" if stated.text("homepage") else "",
        "Version": _escaped(stated.text("version")),
        "Published": stated.text("published"),
        "Fingerprint": f"`{card.fingerprint}` (`giccs-validate {DATA}`)",
        "Card": f"written by giccs {card.version}",
    }
    yield "## Provenance"
    yield "\n".join(f"- {what}: {said}" for what, said in known.items() if said)
    if card.not_stated:
        yield "## Not stated"
        yield "\n".join(f"- {QUESTIONS[key].asks}" for key in card.not_stated)


def _escaped(text: str) -> str:
    r"""Return one line that Markdown and HTML show as it is.

    >>> print(_escaped("find_hotel | <b>\n# 1."), _escaped("1. a"), _escaped("- 0.5"))
    find\_hotel \| &lt;b&gt; # 1. 1\. a \- 0.5
    """
    line = html.escape(" ".join(text.split()), quote=False)
    return MARKDOWN_AT_START.sub(r"\1\\", MARKDOWN_ANYWHERE.sub(r"\\\1", line))


def _fenced(text: str, language: str = "") -> str:
    """Return a block of code; the fence is longer than any in the text.

    >>> print(_fenced("a = 1", "python"))
    ```python
    a = 1
    ```
    """
    longest = max((len(fence) for fence in FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
