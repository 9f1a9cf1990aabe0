"""The field for the reader's note on a dialogue, stored in the file of ``--notes`` when it is left.

A text that could not be stored is a draft of the session: it stays in the field, with the reason, until it is
stored or discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from bws.base.problems import InputError, Problem
from giccs_app.explorer.dialogues.notes import (
    ChangedNoteError,
    plain,
    read_notes,
    text_of,
    write_note,
)
from giccs_app.explorer.display import show_problems
from giccs_app.explorer.labels import literal, say
from giccs_app.explorer.study import Study

DRAFTS = "notes: drafts"
"""Key of the session state: dialogue -> draft."""


@dataclass(frozen=True)
class Draft:
    """A note that could not be stored."""

    text: str
    expected: str
    """The note in the file when the field was shown."""
    problems: Sequence[Problem] = ()
    """Empty if another program has changed the note."""


def show_note(study: Study, dialogue: str) -> None:
    """Show the note on a dialogue in a field; nothing without a file of notes."""
    path = study.notes_file
    if path is None:
        return
    drafts: dict[str, Draft] = st.session_state.setdefault(DRAFTS, {})
    try:
        notes = read_notes(path)
    except InputError as error:
        show_problems(say("dialogues.no_notes"), error.problems)
        if dialogue in drafts:
            st.text(drafts[dialogue].text)
        return
    stored = text_of(notes, dialogue)
    if dialogue in drafts and drafts[dialogue].text == stored:
        del drafts[dialogue]
    draft = drafts.get(dialogue)
    _show_field(path, dialogue, draft or Draft(stored, stored))
    if draft is not None:
        _show_draft(path, dialogue, draft, stored)
    elif stored:
        st.caption(say("dialogues.note_stored", time=literal(notes[dialogue].time)))
    if others := [literal(other) for other in drafts if other != dialogue]:
        st.warning(say("dialogues.note_drafts", dialogues=", ".join(others)))


def _show_field(path: str, dialogue: str, draft: Draft) -> None:
    key = _key(dialogue)
    if plain(st.session_state.get(key, "")) != draft.text:
        st.session_state[key] = draft.text
    st.text_area(
        say("dialogues.note"),
        key=key,
        placeholder=say("dialogues.note_hint"),
        on_change=_store_field,
        args=(path, dialogue, draft.expected),
    )


def _show_draft(path: str, dialogue: str, draft: Draft, stored: str) -> None:
    """Show why a text could not be stored, and buttons to store or discard it."""
    if draft.expected != stored:
        st.warning(say("dialogues.note_changed"))
        st.text(stored or "–")
    else:
        show_problems(say("dialogues.note_not_stored"), draft.problems)
    with st.container(horizontal=True):
        st.button(
            say("dialogues.note_store"),
            key="store note",
            on_click=_store,
            args=(path, dialogue, draft.text, stored),
        )
        st.button(
            say("dialogues.note_discard"), key="discard note", on_click=_discard, args=(dialogue,)
        )


def _key(dialogue: str) -> str:
    return f"note {dialogue}"


def _store_field(path: str, dialogue: str, expected: str) -> None:
    """Store the text of the field; called by Streamlit when it has changed."""
    _store(path, dialogue, plain(st.session_state[_key(dialogue)]), expected)


def _store(path: str, dialogue: str, text: str, expected: str) -> None:
    drafts: dict[str, Draft] = st.session_state[DRAFTS]
    try:
        write_note(path, dialogue, text, expected)
        drafts.pop(dialogue, None)
    except ChangedNoteError:
        drafts[dialogue] = Draft(text, expected)
    except InputError as error:
        drafts[dialogue] = Draft(text, expected, error.problems)
    except OSError as error:
        problem = Problem(path, None, f"cannot be written ({error.strerror or error})")
        drafts[dialogue] = Draft(text, expected, [problem])


def _discard(dialogue: str) -> None:
    st.session_state[DRAFTS].pop(dialogue, None)
