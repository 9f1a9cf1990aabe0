"""Tuples of plain items as questions for a language model, with the texts of the study's page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.records import Tuples
from giccs.judging.judge import Judge
from giccs.judging.prompts import AnsweredTuple, TuplePrompt, item_prompt
from giccs.judging.questions import make_question
from giccs.judging.study import JudgingStudy, check_design, first_tuples
from giccs.prompts import LETTERS
from mturk.kinds import get_kind
from mturk.kinds.items.content import ItemContent
from mturk.kinds.texts import page_texts
from mturk.study.settings_file import read_settings_file

KIND = "items"


def open_item_study(
    tuples: Tuples,
    items: str | None,
    config: str,
    judge: Judge,
    *,
    language: str | None = None,
    orders: int | None = None,
    seed: int = 0,
    limit: int | None = None,
    file: str = "tuples",
) -> JudgingStudy:
    """Return the study of the first tuples (by default all) with the question that people get.

    items: the file of the items' texts; None: the items are their own texts. config: settings of the study,
    with its file of texts. language, orders, seed, limit: see giccs judge. file: the tuples file, which is
    checked like those of people. Raises InputError with every problem of the input, and for images.
    """
    check_design(tuples, orders, file)
    settings = read_settings_file(config)
    if settings.kind != KIND:
        message = f"kind is {settings.kind!r}; expected {KIND!r}, or --dialogues FILE"
        raise InputError(Problem(config, None, message))
    kind = get_kind(KIND)
    planned = kind.plan(file, items, settings, language)
    texts = page_texts(kind.package, planned.settings.language, planned.settings.texts)
    parts = {part.tuple_id: part for hit in planned.hits for part in hit.parts}
    used = first_tuples(tuples, limit)
    questions = [
        make_question(part.tuple_id, (), dict(zip(part.item_ids, content.texts, strict=True)), seed)
        for part in map(parts.__getitem__, used.ids)
        for content in [kind.content(part, texts)]
    ]
    prompt = _prompt(config, texts, judge.answer)
    return JudgingStudy(used, questions, [prompt], judge, orders or tuples.k, seed)


def _prompt(config: str, texts: Mapping[str, Any], answer: str) -> TuplePrompt:
    """Return the prompt with the texts of a page, named after the settings file."""
    return item_prompt(
        Path(config).stem,
        texts["language"],
        [*texts["brief"], *texts["instruction"]],
        (texts["example"]["heading"], texts["tuple"]),
        ("".join(texts["best"]), "".join(texts["worst"])),
        _example(config, texts["example"]),
        answer,
    )


def _example(config: str, example: Mapping[str, Any]) -> AnsweredTuple:
    options = [ItemContent.of_option(option) for option in example["options"]]
    if any(option.image for option in options):
        message = "the example of the texts has images; expected texts"
        raise InputError(Problem(config, None, message))
    if len(options) > len(LETTERS):
        message = f"the example has {len(options)} options; expected at most {len(LETTERS)}"
        raise InputError(Problem(config, None, message))
    return AnsweredTuple(
        ["\n".join(option.texts) for option in options],
        example["best"],
        example["worst"],
        example["why"],
    )
