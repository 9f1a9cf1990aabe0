"""Models behind an OpenAI-compatible server: what do they answer?

request     a prompt -> what is sent, and the name under which its answer is kept
model       prompts -> answers
"""

from __future__ import annotations

from giccs.models.chat.model import ChatModel, open_chat

__all__ = ["ChatModel", "open_chat"]
