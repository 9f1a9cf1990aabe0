"""Prompts of encoders: texts put before each text of a pair, such as ``query: `` and ``passage: `` of E5.

Models that encode queries otherwise than documents, by a Router or by code of their own, do so for prompts
and routes of these names, as `encode_query` and `encode_document` of sentence-transformers.

A prompt is written in one of these forms; ``||`` separates the prompts of the target (the last turn) and the
candidate.

    NAME             a prompt of the model itself (``prompts`` of sentence-transformers), or one of its routes
    NAME||NAME       two of them
    NAME=TEXT        another text, under a name for tables
    NAME=TEXT||TEXT  two texts, one of which may be empty
    none             no prompt, also instead of the model's default; also as one of two names
    default          the model's default prompt, as without the option
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bws.base.problems import InputError, Problem, suggestion
from giccs.models.abilities import SidedModel

SEPARATOR = "||"
_TEXT = r"(?:(?!\|\|).)*"
PROMPT_PATTERN = (
    r"[^=|]+(?:\|\|[^=|]+)?|"
    r"(?!(?:none|default)=)[\w.-]+=(?!(?:\|\|)?$)" + _TEXT + r"(?:\|\|" + _TEXT + ")?"
)
EXPECTED_PROMPT = (
    "NAME, NAME||NAME, NAME=TEXT or NAME=TEXT||TEXT, with NAME other than none= and default="
)


TASKS = ("query", "document")
"""Names of prompts with an own method of encoding, such as `encode_query`."""


@dataclass(frozen=True, slots=True)
class Side:
    """How the texts of one side of a pair are encoded."""

    prompt: str = ""
    """Text put before each text."""
    task: str | None = None
    """Task of sentence-transformers, which chooses a route; None for the default route."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Routes of a module Router, which has other modules for queries than for documents."""

    names: tuple[str, ...]
    default: str | None
    """Route of texts without a task; None if there is none."""
    mappings: Mapping[tuple[Any, Any], str] = field(default_factory=dict)
    """(task, modality) -> route; None stands for any."""

    def route(self, task: str | None) -> str | None:
        """Return the route of texts with a task, as Router resolves it; None if there is none.

        >>> routes = Routes(("query", "document"), default="document")
        >>> routes.route("query"), routes.route(None), routes.route("passage")
        ('query', 'document', None)
        """
        for key in ((task, "text"), (task, None), (None, "text"), (None, None)):
            if key in self.mappings:
                return self.mappings[key]
        if task is not None:
            return task if task in self.names else None
        return "text" if "text" in self.names else self.default


@dataclass(frozen=True, slots=True)
class EncoderPrompt:
    """How targets and candidates are encoded."""

    name: str
    """Name in tables."""
    target: Side = Side()
    candidate: Side = Side()
    routes: tuple[str | None, ...] = ()
    """Route of each side; empty for models without routes."""

    @property
    def is_symmetric(self) -> bool:
        """Whether both sides are encoded alike."""
        return self.target == self.candidate

    def identity(self) -> dict[str, dict[str, str]]:
        """Return the entries of the signature; results without a prompt and without routes have none.

        >>> NO_PROMPT.identity()
        {}
        """
        sides = {"target": self.target.prompt, "candidate": self.candidate.prompt}
        has_prompt = self.name or any(sides.values())
        prompt = {"prompt": {"name": self.name, **sides}} if has_prompt else {}
        routes = dict(zip(sides, map(str, self.routes), strict=False))
        return prompt | ({"routes": routes} if routes else {})


NO_PROMPT = EncoderPrompt("")
"""The prompt of models that have no default prompt."""


def after_prompt(prompt: str, text: str | tuple[str, str]) -> str | tuple[str, str]:
    """Return a text, or a pair of texts encoded as one input, after a prompt.

    >>> after_prompt("query: ", "a"), after_prompt("query: ", ("a", "b"))
    ('query: a', ('query: a', 'b'))
    """
    return f"{prompt}{text}" if isinstance(text, str) else (f"{prompt}{text[0]}", text[1])


def check_symmetric(model: SidedModel) -> None:
    """Raise InputError for a model with different prompts or routes for targets and candidates."""
    if not model.is_symmetric():
        message = (
            "has a prompt for targets and another for candidates; expected one prompt for all texts"
        )
        raise InputError(Problem(model.name, None, message))


def resolve_prompt(
    model: str,
    prompt: str,
    own: Mapping[str, str | None],
    default: str | None = None,
    routes: Routes | None = None,
) -> EncoderPrompt:
    """Return how each side is encoded, for a prompt in one of the forms of this module.

    model: name of the model, for messages. own, default: the prompts of the model itself, and the name of its
    default prompt, if any. routes: its routes, if any. Raises InputError for an unknown name.

    >>> resolve_prompt("m", "query||passage", {"query": "query: ", "passage": "passage: "}).target
    Side(prompt='query: ', task='query')
    >>> resolve_prompt("m", "sts=Find a paraphrase: ", {}).candidate
    Side(prompt='Find a paraphrase: ', task=None)
    >>> resolve_prompt("m", "none", {}, default=None) == NO_PROMPT
    True
    """
    name, sides = _sides(model, prompt, own, default, routes)
    of_sides = tuple(routes.route(side.task) for side in sides) if routes else ()
    return EncoderPrompt(name, *sides, of_sides)


def check_routes(model: str, prompt: EncoderPrompt, routes: Routes | None) -> None:
    """Raise InputError for a prompt without a route, of a model without a default one."""
    if routes and None in prompt.routes:
        example = f"--prompt {routes.names[0]!r} or {'||'.join(routes.names[:2])!r}"
        message = f"has the routes {', '.join(routes.names)} and no default route"
        raise InputError(Problem(model, None, f"{message}; expected one or two, as in {example}"))


def _sides(
    model: str,
    prompt: str,
    own: Mapping[str, str | None],
    default: str | None,
    routes: Routes | None,
) -> tuple[str, tuple[Side, Side]]:
    """Return the name of a prompt, and both sides."""
    name, is_text, text = prompt.partition("=")
    if is_text:
        target, is_two, candidate = text.partition(SEPARATOR)
        return name, (Side(target), Side(candidate if is_two else target))
    if prompt == "default" and default:
        side = Side(_named_side(model, default, own, None).prompt)
        return default, (side, side)
    if prompt in ("default", "none"):
        return "none" if default else "", (Side(), Side())
    target, _, candidate = prompt.partition(SEPARATOR)
    names = (target, candidate or target)
    first, second = (_named_side(model, side, own, routes) for side in names)
    return prompt, (first, second)


def _named_side(
    model: str, name: str, own: Mapping[str, str | None], routes: Routes | None
) -> Side:
    if name == "none":
        return Side()
    route_names = routes.names if routes else ()
    if name in own or name in route_names:
        has_task = name in TASKS if routes is None else routes.route(name) is not None
        return Side(own.get(name) or "", name if has_task else None)
    names = list(dict.fromkeys([*own, *route_names]))
    known = (
        f"expected {', '.join([*names, 'none'])}" if names else "the model has none; expected none"
    )
    message = f"has no prompt {name!r}{suggestion(name, names)}; {known} or NAME=TEXT"
    raise InputError(Problem(model, None, message))
