"""HITs of plain items: the best and the worst of a few words, sentences, sentence pairs or images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from mturk.kinds import Fields, PartContent, StatedSettings
from mturk.kinds.texts import built_in_languages, built_in_texts
from mturk.kinds.tuples import Tuples

if TYPE_CHECKING:
    from mturk.study.plan import HitPart, PlannedStudy
    from mturk.study.settings import Settings

__all__ = ["KIND", "PRESETS"]

PRESETS = ("relatedness", "sentiment", "plausibility")
"""Names of the built-in files of texts with a question of their own."""


class Items(Tuples):
    """HITs with the best and the worst item per tuple; the question is in the study's file of texts."""

    defaults: Mapping[str, Any] = {"language_check": False, "dialogues_per_hit": 5}
    setting_names: Mapping[str, str] = {
        "dialogues_per_hit": "tuples_per_hit",
        "dialogue_language": "item_language",
    }
    setting_comments: Mapping[str, str] = {
        "dialogue_language": 'Language of the items, a BCP 47 tag: "en", "de", "en-GB".\n'
        "Default: that of --language.",
        "language": "Language of the page texts. Default: that of the file of texts.",
        "texts": "File with all texts of the page: the question, its instructions and an example.\n"
        "`giccs annotate estimate --default-texts items` prints an English one to complete.",
        "dialogues_per_hit": "Tuples per page, drawn at random.",
        "countries": "Countries of workers, as stated by themselves; not a test of their language.\n"
        '[] for all. Default: ["DE"] for German items, [] for others.',
    }
    unused_settings: Sequence[str] = ("language_check",)
    has_question = False

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Plan the study of a tuples file.

        dialogues: the file of the items' texts or images; None: the items are their own texts. The
        language is that of the settings or `language`.
        """
        from bws.files import read_tuples
        from mturk.kinds.items.plan import plan, plan_notes
        from mturk.study.plan import PlannedStudy, controls_of, round_notes, rounds_of

        study_settings = settings.settings(language)
        _check_texts(study_settings)
        tuples = read_tuples(file)
        plans = plan(tuples, dialogues, study_settings, file)
        notes = [*plan_notes(plans, study_settings), *round_notes(tuples)]
        rounds, controls = rounds_of(tuples), controls_of(tuples, file)
        return PlannedStudy(study_settings, tuple(plans), tuple(notes), rounds, controls)

    def content(self, part: HitPart, texts: Mapping[str, Any]) -> PartContent:
        """Return the texts of the items, those of a pair in two lines; InputError for images."""
        from mturk.kinds.items.plan import Part

        if not isinstance(part, Part):
            return super().content(part, texts)
        if any(content.image for content in part.contents):
            message = (
                f"tuple {part.tuple_id!r} has images, which only the worker page can show; "
                "expected texts"
            )
            raise InputError(Problem("items", None, message))
        return PartContent(tuple("\n".join(content.texts) for content in part.contents))

    def form_remarks(self, fields: Fields, settings: Settings) -> list[str]:
        """Return no remarks: the page has no language check."""
        return []


def _check_texts(settings: Settings) -> None:
    """Raise InputError for a missing question, and for placeholders of the built-in texts."""
    if not settings.texts:
        message = (
            'kind "items" has no question of its own; expected texts = "texts.toml", a file that '
            "`giccs init --preset` writes or `giccs annotate estimate --default-texts items` prints"
        )
        raise InputError(Problem("settings", None, message))
    for language in built_in_languages(__name__):
        template = built_in_texts(__name__, language)
        for key, text in (
            ("instruction", template["instruction"][0]),
            ("example.why", template["example"]["why"]),
        ):
            if text in settings.texts:
                message = f"{key} has the placeholder {text!r}; expected a text of your own"
                raise InputError(Problem("texts", None, message))


KIND = Items()
