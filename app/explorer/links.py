"""What the explorer shows right now, as query parameters: every view has a link that restores it.

`begin` reads the address at the start of a run. A widget of this module takes its value from there, whatever
it held before, and writes what a person chooses back; a value that stands for the default is not written. A
value that is not allowed is ignored and counted in `ignored`.

Going back or forward in the browser, and opening a link, run the page without any widget having changed: then
the address is right. Where a widget changed, the browser's address may be older than what was already chosen,
so what was chosen is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import streamlit as st

__all__ = [
    "begin",
    "go",
    "ignore",
    "ignored",
    "link",
    "multiselect",
    "number",
    "score_range",
    "segmented",
    "selectbox",
    "text",
    "toggle",
    "value",
]

T = TypeVar("T")
Texts = tuple[str, ...]
Read = Callable[[Texts], T]
Write = Callable[[T], Texts]

AT, CHANGED, IGNORED = "link: parameters", "link: changed", "link: ignored"
LONGEST = 200
"""Characters of a text that a link can hold."""


def begin() -> None:
    """Find out what is to be shown; call this first in each run."""
    at = {key: tuple(st.query_params.get_all(key)) for key in st.query_params}
    if AT not in st.session_state or not st.session_state.pop(CHANGED, False):
        st.session_state[AT] = at
    elif at != st.session_state[AT]:
        _write_address()
    st.session_state[IGNORED] = {}


def value(key: str) -> str | None:
    """Return a parameter as it stands in the link, unchecked; None where it has none."""
    return (_at().get(key) or (None,))[-1]


def ignored() -> Mapping[str, str]:
    """Return the parameters of this run whose values are not allowed, with these values."""
    return dict(st.session_state.get(IGNORED, {}))


def ignore(key: str, asked: str) -> None:
    """Count a parameter as one whose value is not allowed."""
    st.session_state[IGNORED][key] = asked


def go(**parameters: str | None) -> None:
    """Set parameters, or take them away (None); a callback for buttons: ``on_click=links.go``."""
    _set({key: None if new is None else (str(new),) for key, new in parameters.items()})


def link(**parameters: str | None) -> str:
    """Return the address of this view with some parameters changed, from the question mark on."""
    at = _at() | {key: (str(new),) for key, new in parameters.items() if new is not None}
    gone = {key for key, new in parameters.items() if new is None}
    return "?" + urlencode({key: list(at[key]) for key in at if key not in gone}, doseq=True)


def selectbox(
    key: str,
    label: str,
    options: Sequence[T],
    default: T | None = None,
    *,
    shown: Callable[[T], str] = str,
    quiet: bool = False,
    **settings: Any,
) -> T:
    """Let one of `options` be chosen (the first, or `default`); its ``str`` stands in the link.

    quiet: a value in the link that is not among the options counts as none, not as ignored.
    """
    bound = _Bound(key, options[0] if default is None else default, _one_of(options), _as_text)
    return bound.show(st.selectbox, label, options, quiet=quiet, format_func=shown, **settings)


def segmented(
    key: str,
    label: str,
    options: Sequence[T],
    default: T | None = None,
    *,
    shown: Callable[[T], str] = str,
    **settings: Any,
) -> T:
    """As `selectbox`, for a few options side by side. What `shown` returns is Markdown: no data here."""
    bound = _Bound(key, options[0] if default is None else default, _one_of(options), _as_text)
    settings |= {"format_func": shown, "required": True}
    return bound.show(st.segmented_control, label, options, **settings)


def multiselect(
    key: str,
    label: str,
    options: Sequence[T],
    *,
    shown: Callable[[T], str] = str,
    **settings: Any,
) -> list[T]:
    """Let any number of `options` be chosen; none is the default."""
    bound: _Bound[list[T]] = _Bound(key, [], _some_of(options), _as_texts)
    return bound.show(st.multiselect, label, options, format_func=shown, **settings)


def text(key: str, label: str, **settings: Any) -> str:
    """Let a text of at most 200 characters be written; the empty one is the default."""
    bound = _Bound(key, "", _short, _as_text)
    return bound.show(st.text_input, label, max_chars=LONGEST, **settings)


def toggle(key: str, label: str, default: bool = False, **settings: Any) -> bool:
    """Let something be on or off; ``yes`` or ``no`` stands in the link."""
    bound = _Bound(key, default, _on_or_off, lambda on: ("yes" if on else "no",))
    return bound.show(st.toggle, label, **settings)


def number(key: str, label: str, low: int, high: int, default: int, **settings: Any) -> int:
    """Let a whole number from `low` to `high` be chosen."""
    bound = _Bound(key, default, partial(_within, low, high), _as_text)
    return bound.show(st.number_input, label, low, high, **settings)


def score_range(
    key: str, label: str, low: float = 0.0, high: float = 1.0, **settings: Any
) -> tuple[float, float]:
    """Let a part of [low, high] be chosen, all of it by default; ``0.2..0.8`` stands in the link."""
    bound = _Bound(
        key, (low, high), partial(_ends, low, high), lambda ends: (f"{ends[0]:g}..{ends[1]:g}",)
    )
    return bound.show(st.slider, label, low, high, step=0.05, **settings)


def _at() -> dict[str, Texts]:
    at: dict[str, Texts] = st.session_state.get(AT, {})
    return at


@dataclass(frozen=True)
class _Bound(Generic[T]):
    """A widget's value and the link's parameter of the same name."""

    key: str
    default: T
    read: Read[T]
    write: Write[T]

    def show(
        self, widget: Callable[..., object], *arguments: Any, quiet: bool = False, **settings: Any
    ) -> T:
        """Show the widget, and return its value."""
        self._prepare(quiet)
        widget(*arguments, key=self.key, on_change=self._chosen, **settings)
        value: T = st.session_state[self.key]
        return value

    def _prepare(self, quiet: bool) -> None:
        """Give the widget its value: that of the link where it is allowed, else the default."""
        found = self.default
        if texts := _at().get(self.key):
            try:
                found = self.read(texts)
            except ValueError:
                if not quiet:
                    ignore(self.key, texts[-1])
        if self.key not in st.session_state or st.session_state[self.key] != found:
            st.session_state[self.key] = found

    def _chosen(self) -> None:
        """Keep what a person chose; called by Streamlit before the run.

        A browser may send what is no value any more: the label of an option in the language shown before.
        """
        new = st.session_state[self.key]
        with suppress(ValueError):
            self.read(self.write(new))
            _set({self.key: None if new == self.default else self.write(new)})


def _set(parameters: Mapping[str, Texts | None]) -> None:
    at = _at() | {key: new for key, new in parameters.items() if new is not None}
    for key, new in parameters.items():
        if new is None:
            at.pop(key, None)
    st.session_state[AT], st.session_state[CHANGED] = at, True
    _write_address()


def _write_address() -> None:
    st.query_params.from_dict({key: list(texts) for key, texts in _at().items()})


def _one_of(options: Sequence[T]) -> Read[T]:
    def read(texts: Texts) -> T:
        for option in options:
            if str(option) == texts[-1]:
                return option
        raise ValueError(texts[-1])

    return read


def _some_of(options: Sequence[T]) -> Read[list[T]]:
    known = {str(option): option for option in options}

    def read(texts: Texts) -> list[T]:
        if not all(text in known for text in texts):
            raise ValueError(next(text for text in texts if text not in known))
        return [known[text] for text in dict.fromkeys(texts)]

    return read


def _short(texts: Texts) -> str:
    if len(texts[-1]) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    return texts[-1]


def _on_or_off(texts: Texts) -> bool:
    return _one_of(["no", "yes"])(texts) == "yes"


def _within(low: int, high: int, texts: Texts) -> int:
    number = int(texts[-1])
    if not low <= number <= high:
        raise ValueError(f"{number} is not from {low} to {high}")
    return number


def _ends(low: float, high: float, texts: Texts) -> tuple[float, float]:
    """Return the two ends of ``0.2..0.8``; ValueError where they are not two numbers in their order.

    >>> _ends(0, 1, ("0.2..0.8",))
    (0.2, 0.8)
    """
    first, _, last = texts[-1].partition("..")
    ends = float(first), float(last)
    if not low <= ends[0] <= ends[1] <= high:  # so for NaN, too
        raise ValueError(f"{texts[-1]} is not a range in {low}..{high}")
    return ends


def _as_text(new: object) -> Texts:
    return (str(new),)


def _as_texts(new: Sequence[object]) -> Texts:
    return tuple(map(str, new))
