"""Models behind an OpenAI-compatible server: what do they answer, and what does that cost?

address     which server, and may the key go there?
request     a prompt -> what is sent, and the name under which its answer is kept
cache       answers that were had before: a rerun costs nothing
wire        one request to the server, and what may come back
threads     several at a time, and none begun once one has failed
usage       requests, tokens, dollars
model       all of it behind one call
"""

from __future__ import annotations

from giccs.models.chat.model import ChatModel, open_chat

__all__ = ["ChatModel", "open_chat"]
