"""Studies with a recruiting link for a panel, and their settings file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from annotated_types import Ge

from bws.base.problems import InputError, Problem
from bws.base.settings_files import Checked, Table, TableError, read_settings_text
from mturk.service.rules.admission import StudyRules
from mturk.service.rules.ends import ENDS, FINISHED, TIMED_OUT
from mturk.service.rules.participation import Consent
from mturk.service.site.panel_signature import read_key_set, signed_parameters
from mturk.service.site.study_questions import (
    StudyQuestion,
    Texts,
    language_of,
    questions_with_presets,
)
from mturk.service.site.texts import has_text, languages, text, use_folder

PROLIFIC_URL = "https://app.prolific.com/submissions/complete?cc={code}"
NAME = re.compile(r"[\w.-]{1,64}")
VOLUNTEER_SETTINGS: Mapping[str, Any] = {"return_url": "", "country": False}
"""Settings of a study of volunteers unless it states others."""


def _check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"is {name!r}; expected 1 to 64 letters, digits, '.', '_' or '-'")
    return name


def _check_address(address: str) -> str:
    if address and urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"is {address!r}; expected an https or http address")
    return address


StudyName = Annotated[str, Checked(_check_name)]
Positive = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class PanelStudy(Table):
    """A study that participants of a panel, or volunteers, join by a recruiting link."""

    name: StudyName
    """Name in the link's token: 1 to 64 letters, digits, ``.``, ``_`` or ``-``."""
    completion_code: str = ""
    """Code shown at the end of the study only; volunteers need none."""
    title: str = ""
    group_id: str | None = None
    """HIT group (HITGroupId) of the study; None: all HITs available to the worker."""
    hits: Positive | None = None
    """Number of HITs after which the study ends for a participant; None: when no HITs are available.

    Counted over all sessions of the participant in the study. A session after a completed one begins anew.
    """
    return_url: Annotated[str, Checked(_check_address)] = PROLIFIC_URL
    """Return address at the end; ``{code}`` is replaced by the completion code; empty: none."""
    information: Texts = field(default_factory=dict)
    """Language -> information before the consent; blank lines separate paragraphs."""
    participants: Positive | None = None
    """Maximum number of participants; None: unlimited."""
    exclude: Sequence[StudyName] = ()
    """Names of studies whose participants cannot take part in this one."""
    link_days: Positive = 90
    """Days until a printed recruiting link expires."""
    prolific_keys: str = ""
    """File of Prolific's public keys (JSON Web Key Set); if set, links need Prolific's signature."""

    version: str = "1"
    """Version of the information and consent; after a change, participants are asked again."""
    screened_out_code: str = ""
    """Code for participants whose answers are not accepted; empty: none."""
    no_consent_code: str = ""
    """Code for those who do not consent."""
    timed_out_code: str = ""
    """Code for those who have not finished in `minutes`; required with it."""
    withdrawn_code: str = ""
    """Code for those who withdraw; empty: the completion code, if they have submitted a task."""
    minutes: Positive | None = None
    """Time for the whole study from the entry in a session; None: unlimited."""
    retention_days: Positive | None = None
    """Days after a participant's last activity until the identity is erased; None: never."""
    country: bool = True
    """Whether participants are asked for their country; otherwise they meet no requirement of a location."""
    questions: Sequence[StudyQuestion] = ()
    """Questions after the consent."""
    volunteers: bool = False
    """Whether people take part without pay and without a panel, under ids that they choose themselves."""

    def __post_init__(self) -> None:
        if messages := dict(self._problems()):
            raise TableError(messages)

    def _problems(self) -> Iterator[tuple[str, str]]:
        """Yield keys that do not fit to others."""
        if self.volunteers and self.prolific_keys:
            yield "prolific_keys", "belongs to paid studies; volunteers have no signatures"
        elif self.prolific_keys:
            try:
                read_key_set(self.prolific_keys)
            except ValueError as error:
                yield "prolific_keys", str(error)
        if not self.volunteers and not self.completion_code.strip():
            yield "completion_code", "is missing; expected the code shown at the end of the study"
        elif self.minutes and not self.volunteers and not self.code(TIMED_OUT, submitted=True):
            message = "needs timed_out_code, a code for those who have submitted tasks"
            yield "minutes", f"{message} when the time is over, which can be the completion_code"
        if self.name in self.exclude:
            yield "exclude", f"contains {self.name!r}; expected names of other studies"
        for language in self.information:
            if missing := [key for key in self.consent_keys if not has_text(language, key)]:
                yield (
                    "information",
                    f"is in {language}, but the consent is not ({', '.join(missing)}); expected these "
                    f"texts in {language}.po beside the file of studies: `giccs annotate check-texts --new "
                    f"{language}` prints a catalogue to translate",
                )
        ids = [question.id for question in self.questions]
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            yield "questions", f"has the id {repeated[0]!r} twice; expected each once"

    def panel_parameters(self, query: Mapping[str, str], site_url: str) -> Mapping[str, str]:
        """Return the panel's parameters of a recruiting link; raise LinkError if a signature is missing."""
        if not self.prolific_keys:
            return query
        return signed_parameters(query.get("prolific_token", ""), self.prolific_keys, site_url)

    @property
    def rules(self) -> StudyRules:
        """Limits on the participants."""
        return StudyRules(self.participants, self.exclude, self.max_seconds)

    @property
    def max_seconds(self) -> int | None:
        """`minutes` in seconds."""
        return None if self.minutes is None else 60 * self.minutes

    def code(self, end: str, *, submitted: bool) -> str:
        """Return the code of an end in `ENDS`, with or without a submitted task; empty if none.

        >>> PanelStudy("pilot", "C1").code("withdrawn", submitted=True)
        'C1'
        """
        codes = [getattr(self, name).strip() for name in ENDS[end, submitted].codes]
        return next(filter(None, codes), "")

    def completion_url(self, end: str = FINISHED, *, submitted: bool = True) -> str:
        """Return the panel's address for participants at an end; empty if not set.

        >>> PanelStudy("pilot", "C1 X").completion_url()
        'https://app.prolific.com/submissions/complete?cc=C1%20X'
        """
        return self.return_url.replace(
            "{code}", quote(self.code(end, submitted=submitted), safe="")
        )

    @property
    def information_key(self) -> str:
        """Key of the text that says what is stored."""
        if self.volunteers and not self.country:
            return "start.information.volunteers"
        return "start.information" if self.country else "start.information.no_country"

    @property
    def consent_keys(self) -> tuple[str, str]:
        """Keys of the texts to which participants consent, besides the information."""
        return self.information_key, "start.consent"

    @property
    def consent_languages(self) -> Sequence[str]:
        """Languages in which the consent is complete: those of the information, if there is one."""
        return list(self.information) or [
            language
            for language in languages()
            if all(has_text(language, key) for key in self.consent_keys)
        ]

    def consent_language(self, language: str) -> str:
        """Return the language in which a reader of a language gives the consent."""
        return language_of(dict.fromkeys(self.consent_languages, ""), language)

    def consent(self, language: str) -> Consent:
        """Return the wording to which a reader of a language consents; it is in `consent_language`."""
        shown = self.consent_language(language)
        sentences = [text(shown, key) for key in self.consent_keys]
        return Consent(self.version, shown, "\n\n".join([*self.paragraphs(shown), *sentences]))

    def consents(self) -> list[Consent]:
        """Return the wordings of the consent in all its languages."""
        return [self.consent(language) for language in self.consent_languages]

    def paragraphs(self, language: str) -> list[str]:
        """Return the paragraphs of the information for a reader of a language."""
        words = self.information.get(self.consent_language(language), "")
        return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", words) if paragraph.strip()]


def read_studies(path: str) -> list[PanelStudy]:
    """Read studies from TOML, one table per study: ``[pilot]`` with ``completion_code = "C1"`` and so on.

    The catalogues beside the file are used by the site from then on. Raises InputError with all problems.
    """
    if path != "-":
        use_folder(Path(path).absolute().parent)
    file = read_settings_text(path)
    studies: list[PanelStudy] = []
    problems: list[Problem] = []
    for name, table in file.values.items():
        try:
            studies.append(file.parsed(PanelStudy, _with_presets(table), (name,), name=name))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return studies


def _with_presets(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    preset = VOLUNTEER_SETTINGS if table.get("volunteers") is True else {}
    return {**preset, **table, "questions": questions_with_presets(table.get("questions", []))}
