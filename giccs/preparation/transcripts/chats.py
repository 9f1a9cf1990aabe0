"""Chat logs: conversations with language models, in the shapes in which they are published and exported.

=============================  ======================================================================
fine-tuning, LMSYS, WildChat   ``messages`` or ``conversation`` of ``role`` and ``content``
ShareGPT                       ``conversations`` of ``from`` and ``value``
batches of OpenAI, Anthropic   requests with ``custom_id`` and ``body`` or ``params``, and their answers
prompts with answers           ``prompt`` and ``completion``, ``response`` or ``chosen``; ``instruction``,
                               ``input``, ``output``, ``history`` (Alpaca)
Gemini                         ``contents`` of ``role`` and ``parts``
OpenAssistant                  message trees, threads, and single messages with ``parent_id``
exports of ChatGPT and Claude  ``mapping`` with ``current_node``; ``chat_messages``
=============================  ======================================================================

System prompts, messages of tools and content other than text are left out and counted. Of a conversation with
branches, the one that its platform shows is read: to ``current_node``, or by the replies of the best rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from giccs.benchmark.languages import language_tag
from giccs.preparation.transcripts.names import SYSTEM_NAMES

MESSAGE_LISTS = (
    "messages", "conversations", "conversation", "chat_messages", "contents", "thread", "items",
)  # fmt: skip
ROLE_KEYS = ("role", "from", "sender", "author")
TEXT_KEYS = ("content", "value", "parts", "text")
MESSAGE_KEYS = frozenset(
    {
        *ROLE_KEYS,
        *TEXT_KEYS,
        "type",
        "tool_calls",
        "function_call",
        "replies",
        "message_id",
        "parent_id",
    }
)
"""Keys of a message that are read."""
PROMPT_KEYS = ("system", "systemInstruction", "system_instruction", "instructions")
"""Keys beside the messages with instructions to the model."""
PROMPT_ROLES = ("system", "developer")
"""Roles of instructions to the model, which are not part of the dialogue."""
TOOL_ROLES = (
    "tool", "function", "ipython", "observation", "environment", "tool_call", "tool_calls", "tool_response",
    "tool_result", "function_call", "function_response",
)  # fmt: skip
TEXT_PARTS = (None, "text", "input_text", "output_text")
"""Types of content parts whose ``text`` is what the speaker says."""
PROMPTS = ("prompt", "instruction", "input")
ANSWERS = ("completion", "response", "output", "chosen")
OTHER_BRANCHES = "messages of other branches left out"


@dataclass
class Chat:
    """A conversation in one of the shapes."""

    messages: list[Any]
    values: dict[str, Any]
    """The other keys of the object, such as an id."""
    notes: Counter[str] = field(default_factory=Counter)
    """Numbers of what was left out, by kind."""
    is_answer: bool = False
    """Whether it is the answer to a request in another object or file."""


class Message(NamedTuple):
    """A message of a conversation."""

    speaker: str
    text: str
    """Empty if the message is left out."""
    fault: str
    """Why it is not a message; empty if it is."""


def find_chat(values: Mapping[str, Any]) -> Chat | None:
    """Return the conversation of an object, or None if it has none of the shapes.

    >>> find_chat({"id": 7, "conversations": [{"from": "human", "value": "Hi"}]}).values
    {'id': 7}
    >>> find_chat({"dialogue_id": "d", "turns": ["Hi", "Hello"]}) is None
    True
    """
    chat = next((chat for find in SHAPES if (chat := find(values))), None)
    if chat is None:
        return None
    if language := next((_mapping(message).get("lang") for message in chat.messages), None):
        chat.values.setdefault("language", language)
    if not _is_language(chat.values.get("language")):
        del chat.values["language"]
        chat.notes["names of languages left out (--language TAG sets a language)"] += 1
    return chat


def _is_language(value: Any) -> bool:
    try:
        return value is None or bool(language_tag(str(value)))
    except ValueError:
        return False


def _message_list(values: Mapping[str, Any]) -> Chat | None:
    for name in MESSAGE_LISTS:
        messages = values.get(name)
        if isinstance(messages, list) and (not messages or any(map(_has_role, messages))):
            n_prompts = sum(bool(values.get(key)) for key in PROMPT_KEYS)
            notes = Counter({"system messages left out": n_prompts})
            return Chat(messages, _without(values, name, *PROMPT_KEYS), +notes)
    return None


def _has_role(message: Any) -> bool:
    return isinstance(message, dict) and any(key in message for key in ROLE_KEYS)


def _is_filled(value: Any) -> bool:
    return isinstance(value, (str, list)) and bool(value)


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in names}


def _request(values: Mapping[str, Any]) -> Chat | None:
    """Return the conversation of a request of a batch; its method, address and parameters are ignored."""
    name = next((name for name in ("body", "params") if isinstance(values.get(name), dict)), None)
    if "custom_id" not in values or name is None:
        return None
    body = values[name]
    if "messages" not in body and _is_filled(body.get("input")):  # The Responses API.
        messages = _as_messages(body["input"], "user")
        body = {"messages": messages, "instructions": body.get("instructions")}
    chat = find_chat(body)
    return chat and Chat(chat.messages, _without(values, name, "method", "url"), chat.notes)


def _answer(values: Mapping[str, Any]) -> Chat | None:
    """Return the answer to a request of a batch: the first choice."""
    name = next((name for name in ("response", "result") if name in values), None)
    if "custom_id" not in values or name is None:
        return None
    response = _mapping(values[name])
    body = _mapping(response.get("body"))
    choices = _list(body.get("choices")) or _list(body.get("output"))
    messages = [_mapping(choice).get("message", choice) for choice in choices]
    messages = [message for message in (*messages, response.get("message")) if _has_role(message)]
    notes = Counter({"further choices of an answer left out": max(0, len(messages) - 1)})
    notes["requests without an answer"] = int(not messages)
    notes["answers that the maximum number of tokens cut"] = int(_is_cut(response, body, choices))
    return Chat(messages[:1], {"custom_id": values["custom_id"]}, +notes, is_answer=True)


def _is_cut(response: Mapping[str, Any], body: Mapping[str, Any], choices: list[Any]) -> bool:
    """Return whether the first answer to a request ends at the maximum number of tokens."""
    choice = _mapping(next(iter(choices), None))
    reasons = (choice.get("finish_reason"), _mapping(response.get("message")).get("stop_reason"))
    return not {"length", "max_tokens"}.isdisjoint(reasons) or body.get("status") == "incomplete"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _prompt(values: Mapping[str, Any]) -> Chat | None:
    """Return a prompt and its answer: texts, or lists of messages."""
    prompt = next((name for name in PROMPTS if _is_filled(values.get(name))), "")
    answer = next((name for name in ANSWERS if _is_filled(values.get(name))), "")
    messages = _as_messages(values.get(answer), "assistant")
    if not answer or not (prompt or all(map(_has_role, messages))):
        return None
    rest = _without(values, prompt, answer, "history")
    first = values.get(prompt)
    if isinstance(first, str) and prompt == "instruction" and values.get("input"):
        first = f"{first}\n{rest.pop('input')}"
    history = [
        {"role": role, "content": text}
        for pair in _list(values.get("history"))
        for role, text in zip(("user", "assistant"), _list(pair), strict=False)
    ]
    return _message_list(rest | {"messages": [*history, *_as_messages(first, "user"), *messages]})


def _as_messages(value: Any, role: str) -> list[Any]:
    return [{"role": role, "content": value}] if isinstance(value, str) else _list(value)


def _tree(values: Mapping[str, Any]) -> Chat | None:
    """Return the conversation of a message tree that follows the replies of the best rank."""
    node = values.get("prompt")
    if not isinstance(node, dict) or "replies" not in node:
        return None
    messages = []
    total = _size(node)
    while node:
        messages.append(_without(node, "replies"))
        replies = [reply for reply in _list(node["replies"]) if isinstance(reply, dict)]
        node = min(replies, key=_rank, default=None)
        node = node and {"replies": [], **node}
    return Chat(
        messages, _without(values, "prompt"), +Counter({OTHER_BRANCHES: total - len(messages)})
    )


def _rank(reply: Mapping[str, Any]) -> float:
    rank = reply.get("rank")
    return rank if isinstance(rank, (int, float)) else float("inf")


def _size(node: Any) -> int:
    """Return the number of messages of a tree, without recursion."""
    n_nodes, nodes = 0, [node]
    while nodes:
        replies = _list(_mapping(nodes.pop()).get("replies"))
        n_nodes += 1
        nodes += replies
    return n_nodes


def _export(values: Mapping[str, Any]) -> Chat | None:
    """Return the conversation of ChatGPT's export that ends with the current node."""
    nodes = values.get("mapping")
    if not isinstance(nodes, dict):
        return None
    node_id, path = values.get("current_node") or next(reversed(nodes), None), {}
    while isinstance(node_id, str) and node_id in nodes and node_id not in path:
        path[node_id] = _mapping(_mapping(nodes[node_id]).get("message"))
        node_id = nodes[node_id].get("parent")
    n_messages = sum(bool(_mapping(node).get("message")) for node in nodes.values())
    messages = [_exported_message(message) for message in reversed(path.values()) if message]
    rest = _without(values, "mapping", "current_node")
    return Chat(messages, rest, +Counter({OTHER_BRANCHES: n_messages - len(messages)}))


def _exported_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = _mapping(message.get("content"))
    kind = content.get("content_type", "text")
    is_text = kind in ("text", "multimodal_text")
    parts = _list(content.get("parts")) if is_text else [{"type": kind}]
    return {"role": _mapping(message.get("author")).get("role"), "content": parts}


def _preference(values: Mapping[str, Any]) -> Chat | None:
    """Return the conversation of preference fine-tuning with the preferred answer."""
    asked, preferred = _mapping(values.get("input")).get("messages"), values.get("preferred_output")
    if not isinstance(asked, list) or not isinstance(preferred, list):
        return None
    rest = _without(values, "input", "preferred_output", "non_preferred_output")
    n_other = int("non_preferred_output" in values)
    return Chat([*asked, *preferred], rest, +Counter({OTHER_BRANCHES: n_other}))


SHAPES: Sequence[Callable[[Mapping[str, Any]], Chat | None]] = (
    _request, _answer, _message_list, _tree, _export, _preference, _prompt,
)  # fmt: skip


def join_replies(messages: Iterable[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the trees of single messages with ``message_id`` and ``parent_id``, and the number of messages
    without their tree.

    >>> pairs = [("a", None), ("b", "a"), ("c", "missing")]
    >>> trees, lost = join_replies({"message_id": m, "parent_id": p} for m, p in pairs)
    >>> trees[0]["prompt"]["replies"][0]["message_id"], lost
    ('b', 1)
    """
    nodes = {message["message_id"]: {**message, "replies": []} for message in messages}
    roots = []
    for node in nodes.values():
        parent = nodes.get(node["parent_id"])
        if parent:
            parent["replies"].append(node)
        elif node["parent_id"] is None:
            roots.append(node)
    trees = [{"message_tree_id": node["message_id"], "prompt": node} for node in roots]
    return trees, len(nodes) - sum(map(_size, roots))


def is_message(values: Mapping[str, Any]) -> bool:
    """Return whether an object is a message of a chat: a turn with role and content, or from and value."""
    return any({*keys} <= values.keys() for keys in (("role", "content"), ("from", "value")))


def read_messages(
    messages: Sequence[Any], columns: Mapping[str, str], notes: Counter[str], unused: Counter[str]
) -> Iterator[Message]:
    """Yield each message; left-out content is counted in `notes`, and ignored keys in `unused`.

    columns: keys of ``speaker`` and ``text``, if they have other names.

    System messages are instructions if an assistant speaks too, or if they come first; in other conversations
    the system is a speaker.
    """
    roles = [_role(message, columns)[0] for message in messages]
    others = [role.casefold() not in PROMPT_ROLES for role in roles]
    n_first = next((n for n, is_other in enumerate(others) if is_other), len(others))
    has_assistant = any(
        is_other and role.casefold() in SYSTEM_NAMES
        for role, is_other in zip(roles, others, strict=True)
    )
    is_prompt = has_assistant or all(others[n_first:])
    for message in messages:
        yield _read_message(message, columns, notes, unused, is_prompt=is_prompt)


def _role(message: Any, columns: Mapping[str, str]) -> tuple[str, str]:
    """Return the role of a message and its key."""
    values = _mapping(message)
    for key in (columns.get("speaker", ""), *ROLE_KEYS):
        role = _mapping(values.get(key)).get("role", values.get(key))
        if isinstance(role, str):
            return role.strip(), key
    return "", ""


def _read_message(
    message: Any, columns: Mapping[str, str], notes: Counter[str], unused: Counter[str], *, is_prompt: bool
) -> Message:  # fmt: skip
    role, role_key = _role(message, columns)
    if not role:
        return Message(
            "", "", "no role; expected an object with role and content, or from and value"
        )
    values = _mapping(message)
    plain = role.casefold().replace("-", "_")
    if plain in PROMPT_ROLES and is_prompt:
        notes["system messages left out"] += 1
        return Message(role, "", "")
    n_calls = len(_list(values.get("tool_calls"))) + bool(values.get("function_call"))
    notes.update({"tool calls left out": n_calls} if n_calls else {})
    if plain in TOOL_ROLES:
        notes["messages of tools left out"] += 1
        return Message(role, "", "")
    keys = (*filter(None, [columns.get("text")]), *TEXT_KEYS)
    unused.update(f"messages.{key}" for key in values.keys() - MESSAGE_KEYS - {role_key, *keys})
    content = next((values[key] for key in keys if values.get(key) not in (None, "", [], {})), None)
    if content is not None and not isinstance(content, (str, list, dict)):
        return Message(role, "", f"content is {type(content).__name__}; expected text or parts")
    text = _joined_text([content] if isinstance(content, (str, dict)) else content or [], notes)
    if not text:
        notes["messages without text left out"] += 1
    return Message(role, text, "")


def _joined_text(parts: Iterable[Any], notes: Counter[str]) -> str:
    """Return the texts of content parts, joined by a space."""
    texts = []
    for part in parts:
        text = part if isinstance(part, str) else _part_text(_mapping(part))
        if text is None:
            values = _mapping(part)
            kind = values.get("type") or next(iter(values), type(part).__name__)
            notes[f"content parts of type {kind} left out"] += 1
        elif text.strip():
            texts.append(text.strip())
    return " ".join(texts)


def _part_text(part: Mapping[str, Any]) -> str | None:
    """Return the text of a content part, or None if it is something else.

    >>> _part_text({"type": "text", "text": {"value": "Hi"}}), _part_text({"type": "image_url"})
    ('Hi', None)
    """
    text = part.get("text")
    text = text.get("value") if isinstance(text, dict) else text
    return text if part.get("type") in TEXT_PARTS and isinstance(text, str) else None
