"""A dialogue as a chat, its last turn marked."""

from __future__ import annotations

import streamlit as st

from app.explorer.labels import literal, say
from app.explorer.study import Study

__all__ = ["show_chat"]

AVATARS = {"user": ":material/person:", "system": ":material/support_agent:"}


def show_chat(study: Study, dialogue: str, *about: str) -> None:
    """Show the turns of a dialogue as they are, nothing in them rendered; `about` stands above them."""
    turns = study.turns[dialogue]
    told = [literal(part) for part in (dialogue, *about) if part]
    st.caption(" · ".join([*told, say("dialogues.turns", n=len(turns))]))
    for place, turn in enumerate(turns, start=1):
        last = place == len(turns)
        avatar = AVATARS.get(turn.speaker, ":material/chat_bubble:")
        with st.container(border=last), st.chat_message(turn.speaker or "?", avatar=avatar):
            if last:
                st.caption(f":material/flag: **{say('dialogues.last_turn')}**")
            st.text(turn.text)
