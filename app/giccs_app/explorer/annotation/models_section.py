"""The section "People and models" of the page "Annotation": verdicts, annotators, tuples where they part."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from bws.base.problems import InputError
from bws.base.tables import Cell, Column, ResultTable
from bws.model_annotators import model_name
from bws.records import Judgments
from giccs_app.explorer import links
from giccs_app.explorer.annotation.charts import agreement_chart
from giccs_app.explorer.annotation.model_data import (
    ANSWERS,
    STRONG_AGREEMENT,
    AnnotatorAgreement,
    PeopleAndModels,
    compare_people_and_models,
    judgments_of_model,
    parting_answers,
    tuple_votes,
)
from giccs_app.explorer.display import (
    number_column,
    offer_dialogue,
    show_chart,
    show_chat,
    show_problems,
    show_result,
    show_table,
    show_text_table,
)
from giccs_app.explorer.labels import format_number, literal, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.study import Study, index_in_judgments

MAX_DRAWN_ANNOTATORS = 60
"""Largest number of people in the chart, those with the most judgments."""
COLUMNS = {
    "annotator": "",
    "kind": "",
    "judgments": "",
    "same_best": ".3f",
    "same_worst": ".3f",
    "compliance": ".3f",
    "scale": ".2f",
    "first_best": "+.2f",
    "first_worst": "+.2f",
}
"""Columns of the table of annotators -> format."""
VOTES = ("people_best", "people_worst", "model_best", "model_worst")
BY_ANSWER = {"tuple": "tuple", "answer": "answer_key"}
"""Parameters of the link -> columns by which an answer is selected."""


def show_people_and_models(study: Study, people: Judgments, key: str) -> None:
    """Show the section, if there are judgments of models. key: cache key of the judgments of people."""
    if not study.model_judgments:
        return
    st.subheader(say("models_section.title"), anchor=False)
    try:
        compared = _compared(key, study.key, people, study.model_judgments)
    except InputError as error:
        show_problems(say("models_section.not_comparable"), error.problems)
        return
    except ValueError as error:  # all tuples are adaptive
        st.info(plain(local_remark(str(error))))
        return
    _show_verdicts(compared)
    _show_annotators(compared, people.tuples.k)
    _show_parting(study, people, key, [each.model for each in compared.verdicts.models])


@st.cache_resource(show_spinner=False, max_entries=8)
def _compared(
    key: str, study_key: str, _people: Judgments, _models: Sequence[Judgments]
) -> PeopleAndModels:
    return compare_people_and_models(_people, _models)


@st.cache_resource(show_spinner=False, max_entries=32)
def _parting(
    key: str, study_key: str, model: str, _people: Judgments, _model: Judgments
) -> pl.DataFrame:
    return parting_answers(_people, _model)


def _show_verdicts(compared: PeopleAndModels) -> None:
    """Show the verdict on each model as a sentence."""
    lines = []
    for each in compared.verdicts.models:
        test, name = each.test, literal(each.name)
        if test.may_replace is None:
            reason = plain(local_remark(test.no_verdict))
            lines.append(say("models_section.no_verdict", model=name, reason=reason))
            continue
        lines.append(
            say(
                "models_section.may_replace"
                if test.may_replace
                else "models_section.may_not_replace",
                model=name,
                won=sum(comparison.is_won for comparison in test.comparisons),
                total=len(test.comparisons),
                epsilon=format_number(test.epsilon, "g"),
            )
        )
    st.markdown("\n".join(f"- {line}" for line in lines))
    st.caption(say("models_section.verdict_said"))


def _show_annotators(compared: PeopleAndModels, k: int) -> None:
    """Show the chart and the table of people and models."""
    answer = links.segmented(
        "same",
        say("models_section.agreement"),
        ANSWERS,
        format_option=lambda name: say(f"models_section.same_{name}"),
    )
    drawn = _drawn(compared.annotators)
    frame = pl.DataFrame(
        {
            "annotator": [each.statistics.annotator for each in drawn],
            "kind": [_kind(each) for each in drawn],
            **{
                name: pl.Series(
                    [getattr(each.same[answer], name) for each in drawn], dtype=pl.Float64
                )
                for name in ("value", "low", "high")
            },
        }
    ).sort("value", descending=True, maintain_order=True)
    titles = {
        name: say(f"models_section.{name}") for name in ("annotator", "kind", "people", "model")
    }
    titles |= {name: say(f"annotation.title_{name}") for name in ("low", "high")}
    titles["value"] = say(f"models_section.same_{answer}")
    chart = agreement_chart(frame, 1 / k, titles)
    show_chart(chart, f"people and models {answer}", frame, select={"annotator": "annotator"})
    st.caption(say("models_section.agreement_said", k=k))
    if len(drawn) < len(compared.annotators):
        total = sum(not each.is_model for each in compared.annotators)
        st.caption(say("models_section.drawn", n=MAX_DRAWN_ANNOTATORS, total=total))
    columns = [Column(name, name, spec) for name, spec in COLUMNS.items()]
    table = ResultTable(columns, [_row(each) for each in compared.annotators])
    show_result(
        table, "people and models", {name: say(f"models_section.{name}") for name in COLUMNS}
    )
    st.caption(say("models_section.table_said"))


def _drawn(annotators: Sequence[AnnotatorAgreement]) -> list[AnnotatorAgreement]:
    """Return all models, and the people with the most judgments, in the given order."""
    people = [each for each in annotators if not each.is_model]
    most = sorted(people, key=lambda each: -each.statistics.judgments)[:MAX_DRAWN_ANNOTATORS]
    return [each for each in annotators if each.is_model or each in most]


def _kind(each: AnnotatorAgreement) -> str:
    return say("models_section.model" if each.is_model else "models_section.people")


def _row(each: AnnotatorAgreement) -> list[Cell]:
    statistics = each.statistics
    return [
        *(statistics.annotator, _kind(each), statistics.judgments),
        *(each.same[name] for name in ANSWERS),
        *(statistics.compliance, statistics.scale_interval),
        *(statistics.positions.best, statistics.positions.worst),
    ]


def _show_parting(study: Study, people: Judgments, key: str, models: Sequence[str]) -> None:
    """Show the answers in which people agree and a model answers otherwise, and the selected tuple."""
    st.markdown(f"**{say('models_section.parting')}**")
    name = links.selectbox("judge", say("models_section.model"), models, format_option=model_name)
    model = judgments_of_model(study.model_judgments, name)
    answers = _parting(key, study.key, name, people, model)
    strong = format_number(STRONG_AGREEMENT, ".0%")
    if answers.is_empty():
        st.info(say("models_section.nothing_parting", strong=strong))
        return
    st.caption(
        say(
            "models_section.parting_said",
            n=len(answers),
            tuples=answers["tuple"].n_unique(),
            strong=strong,
        )
    )
    texts = _item_texts(study, people)
    named = {answer: say(f"annotation.title_{answer}") for answer in ANSWERS}
    table = answers.with_columns(
        pl.col("people_item", "model_item").replace_strict(texts, return_dtype=pl.String),
        pl.col("answer").replace(named),
        answer_key="answer",
    )
    config = {
        column: number_column(say(f"models_section.{column}"), format="%.2f")
        if kind.is_float()
        else st.column_config.Column(say(f"models_section.{column}"))
        for column, kind in answers.schema.items()
    }
    hidden: dict[str, object] = {"answer_key": None}
    name_of_file = f"parting answers {model_name(name)}"
    show_table(table, name_of_file, select=BY_ANSWER, column_config=config | hidden)
    _show_tuple(study, people, model, texts)


def _item_texts(study: Study, people: Judgments) -> dict[int, str]:
    """Return the utterance of each item of the judgments; its id if it is not in the benchmark."""
    texts = dict(enumerate(map(str, people.tuples.items)))
    index = index_in_judgments(study.benchmark, people.tuples).tolist()
    utterances = zip(index, study.items["utterance"].to_list(), strict=True)
    return texts | {item: text for item, text in utterances if item >= 0}


def _show_tuple(study: Study, people: Judgments, model: Judgments, texts: dict[int, str]) -> None:
    """Show the dialogue of the selected tuple beside its items, with the answers of people and the model."""
    votes = tuple_votes(people, model, links.value("tuple") or "")
    if votes.is_empty():
        st.caption(say("models_section.select_tuple"))
        return
    index = index_in_judgments(study.benchmark, people.tuples)
    rows = study.items.filter(pl.Series(index).is_in(votes["item"].implode()))
    dialogue = rows["dialogue_id"][0] if len(rows) else None
    chat, ranked = st.columns([2, 3], gap="large")
    if dialogue is not None:
        with chat:
            show_chat(study, dialogue)
            offer_dialogue(dialogue, place="parting")
    with ranked:
        utterance = pl.col("item").replace_strict(texts, return_dtype=pl.String)
        table = votes.select(utterance.alias("utterance"), *VOTES)
        titles = {name: say(f"models_section.{name}") for name in ("utterance", *VOTES)}
        show_text_table(table, f"answers {links.value('tuple')}", titles, dict.fromkeys(VOTES, ","))
