"""State of the explorer as query parameters: every view has a link that restores it.

`begin` reads the address at the start of a run. The widgets of this module take their value from the query
parameter of the same name and write changes back; default values are not written. Invalid values are ignored
and reported by `ignored`.

Browser navigation and links run the page without a changed widget; then the address takes precedence. After a
widget has changed, the address of the browser may be outdated, so the stored parameters take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import streamlit as st

T = TypeVar("T")
Texts = tuple[str, ...]
Read = Callable[[Texts], T]
Write = Callable[[T], Texts]

PARAMETERS, CHANGED, IGNORED = "link: parameters", "link: changed", "link: ignored"
SHOWN = "link: shown"
"""Key of a widget -> stored parameters when it appeared."""
SECTION = "link: section"
MAX_TEXT_LENGTH = 200
"""Maximum length of a text parameter."""


def begin() -> None:
    """Read the parameters from the address; call this first in each run."""
    parameters = _address()
    if PARAMETERS not in st.session_state or not st.session_state.pop(CHANGED, None):
        st.session_state[PARAMETERS] = parameters
    elif parameters != st.session_state[PARAMETERS]:
        _write_address()
    st.session_state[IGNORED] = {}


def navigated() -> bool:
    """Return whether the address differs from the stored parameters, so that it takes precedence.

    For callbacks of widgets whose value is set from the link: if a navigation interrupts the run that sets
    it, the browser sends the old value again, which looks like a change.
    """
    return _address() != _parameters()


def leave_fragment(*own: str) -> None:
    """Run the whole page if a widget of this fragment has changed the link; call it first in each fragment.

    In a run of the fragment alone, `begin` is not called, and no other page can be shown. own: parameters
    that only this fragment uses.
    """
    if st.session_state.get(CHANGED, frozenset()) - {*own}:
        st.rerun()
    st.session_state.pop(CHANGED, None)


def value(key: str) -> str | None:
    """Return the unchecked value of a parameter; None if it is missing."""
    return (_parameters().get(key) or (None,))[-1]


def ignored() -> Mapping[str, str]:
    """Return the parameters of this run that have invalid values, with these values."""
    return dict(st.session_state.get(IGNORED, {}))


def ignore(key: str, value: str) -> None:
    """Report a parameter as one with an invalid value."""
    st.session_state[IGNORED][key] = value


def go(**parameters: str | None) -> None:
    """Set or remove (None) parameters; a callback for buttons: ``on_click=links.go``."""
    _set({key: None if new is None else (str(new),) for key, new in parameters.items()})


def go_to(section: str, **parameters: str | None) -> None:
    """Like `go`; the page then scrolls to the section, see `display.section`."""
    st.session_state[SECTION] = section
    go(**parameters)


def section_to_open() -> str | None:
    """Return the section to which this run scrolls; None for the top of the page."""
    section: str | None = st.session_state.pop(SECTION, None)
    return section


def select(key: str, values: Sequence[str]) -> None:
    """Set the values of a multi-select box; a callback for buttons."""
    _set({key: tuple(values) or None})


def link(**parameters: str | None) -> str:
    """Return the query string of this view with changed parameters, including the question mark."""
    parameters_now = _parameters() | {
        key: (str(new),) for key, new in parameters.items() if new is not None
    }
    removed = {key for key, new in parameters.items() if new is None}
    return "?" + urlencode(
        {key: list(parameters_now[key]) for key in parameters_now if key not in removed}, doseq=True
    )


def selectbox(
    key: str,
    label: str,
    options: Sequence[T],
    default: T | None = None,
    *,
    format_option: Callable[[T], str] = str,
    quiet: bool = False,
    **settings: Any,
) -> T:
    """Show a select box (default: the first option); the ``str`` of the selected option is in the link.

    quiet: do not report a value in the link that is not an option.
    """
    bound = _LinkedWidget(
        key, options[0] if default is None else default, _option_parser(options), _as_text
    )
    return bound.show(
        st.selectbox, label, options, quiet=quiet, format_func=format_option, **settings
    )


def segmented(
    key: str,
    label: str,
    options: Sequence[T],
    default: T | None = None,
    *,
    format_option: Callable[[T], str] = str,
    **settings: Any,
) -> T:
    """Show a segmented control; like `selectbox`. `shown` returns Markdown, so it must not return data."""
    bound = _LinkedWidget(
        key, options[0] if default is None else default, _option_parser(options), _as_text
    )
    settings |= {"format_func": format_option, "required": True}
    return bound.show(st.segmented_control, label, options, **settings)


def select_slider(
    key: str,
    label: str,
    options: Sequence[T],
    default: T,
    *,
    format_option: Callable[[T], str] = str,
    **settings: Any,
) -> T:
    """Show a slider over at least two options; like `selectbox`."""
    bound = _LinkedWidget(key, default, _option_parser(options), _as_text)
    return bound.show(st.select_slider, label, options, format_func=format_option, **settings)


def multiselect(
    key: str,
    label: str,
    options: Sequence[T],
    *,
    format_option: Callable[[T], str] = str,
    **settings: Any,
) -> list[T]:
    """Show a multi-select box; by default no option is selected."""
    bound: _LinkedWidget[list[T]] = _LinkedWidget(key, [], _options_parser(options), _as_texts)
    return bound.show(st.multiselect, label, options, format_func=format_option, **settings)


def text(key: str, label: str, **settings: Any) -> str:
    """Show a text input for at most 200 characters; by default empty."""
    bound = _LinkedWidget(key, "", _check_length, _as_text)
    return bound.show(st.text_input, label, max_chars=MAX_TEXT_LENGTH, **settings)


def toggle(key: str, label: str, default: bool = False, **settings: Any) -> bool:
    """Show a toggle; ``yes`` or ``no`` is in the link."""
    bound = _LinkedWidget(key, default, _parse_flag, lambda on: ("yes" if on else "no",))
    return bound.show(st.toggle, label, **settings)


def number(key: str, label: str, low: int, high: int, default: int, **settings: Any) -> int:
    """Show an input for an integer from `low` to `high`."""
    bound = _LinkedWidget(key, default, partial(_parse_integer, low, high), _as_text)
    return bound.show(st.number_input, label, low, high, **settings)


def score_range(
    key: str, label: str, low: float = 0.0, high: float = 1.0, **settings: Any
) -> tuple[float, float]:
    """Show a range slider on [low, high], by default the whole range; ``0.2..0.8`` is in the link."""
    bound = _LinkedWidget(
        key,
        (low, high),
        partial(_parse_range, low, high),
        lambda ends: (f"{ends[0]:g}..{ends[1]:g}",),
    )
    return bound.show(st.slider, label, low, high, step=0.05, **settings)


def _address() -> dict[str, Texts]:
    return {key: tuple(st.query_params.get_all(key)) for key in st.query_params}


def _parameters() -> dict[str, Texts]:
    parameters: dict[str, Texts] = st.session_state.get(PARAMETERS, {})
    return parameters


@dataclass(frozen=True)
class _LinkedWidget(Generic[T]):
    """A widget whose value is synchronised with the query parameter of the same name."""

    key: str
    default: T
    read: Read[T]
    write: Write[T]

    def show(
        self, widget: Callable[..., object], *arguments: Any, quiet: bool = False, **settings: Any
    ) -> T:
        """Show the widget, and return its value."""
        self._prepare(quiet)
        widget(*arguments, key=self.key, on_change=self._store_choice, **settings)
        value: T = st.session_state[self.key]
        return value

    def _prepare(self, quiet: bool) -> None:
        """Set the value of the widget: that of the link if valid, else the default."""
        value = self.default
        if texts := _parameters().get(self.key):
            try:
                value = self.read(texts)
            except ValueError:
                if not quiet:
                    ignore(self.key, texts[-1])
        is_new = self.key not in st.session_state
        if is_new:
            st.session_state.setdefault(SHOWN, {})[self.key] = _parameters()
        if is_new or st.session_state[self.key] != value:
            st.session_state[self.key] = value

    def _store_choice(self) -> None:
        """Store a changed value; called by Streamlit before the run.

        A browser may send an outdated value, for example the label of an option in the previous language. If
        it navigates before it has received the value of a new widget, it sends the lowest one.
        """
        if navigated() and st.session_state.get(SHOWN, {}).get(self.key) == _parameters():
            return
        new = st.session_state[self.key]
        with suppress(ValueError):
            self.read(self.write(new))
            _set({self.key: None if new == self.default else self.write(new)})


def _set(parameters: Mapping[str, Texts | None]) -> None:
    current = _parameters() | {key: new for key, new in parameters.items() if new is not None}
    for key, new in parameters.items():
        if new is None:
            current.pop(key, None)
    changed = st.session_state.get(CHANGED, frozenset()) | frozenset(parameters)
    st.session_state[PARAMETERS], st.session_state[CHANGED] = current, changed
    _write_address()


def _write_address() -> None:
    st.query_params.from_dict({key: list(texts) for key, texts in _parameters().items()})


def _option_parser(options: Sequence[T]) -> Read[T]:
    def read(texts: Texts) -> T:
        for option in options:
            if str(option) == texts[-1]:
                return option
        raise ValueError(texts[-1])

    return read


def _options_parser(options: Sequence[T]) -> Read[list[T]]:
    by_text = {str(option): option for option in options}

    def read(texts: Texts) -> list[T]:
        if not all(text in by_text for text in texts):
            raise ValueError(next(text for text in texts if text not in by_text))
        return [by_text[text] for text in dict.fromkeys(texts)]

    return read


def _check_length(texts: Texts) -> str:
    if len(texts[-1]) > MAX_TEXT_LENGTH:
        raise ValueError(f"longer than {MAX_TEXT_LENGTH} characters")
    return texts[-1]


def _parse_flag(texts: Texts) -> bool:
    return _option_parser(["no", "yes"])(texts) == "yes"


def _parse_integer(low: int, high: int, texts: Texts) -> int:
    number = int(texts[-1])
    if not low <= number <= high:
        raise ValueError(f"{number} is out of range; expected {low} to {high}")
    return number


def _parse_range(low: float, high: float, texts: Texts) -> tuple[float, float]:
    """Return the limits of ``0.2..0.8``; ValueError unless they are two numbers in ascending order.

    >>> _parse_range(0, 1, ("0.2..0.8",))
    (0.2, 0.8)
    """
    first, _, last = texts[-1].partition("..")
    ends = float(first), float(last)
    if not low <= ends[0] <= ends[1] <= high:  # False for NaN, too
        raise ValueError(f"{texts[-1]} is not a range in {low}..{high}")
    return ends


def _as_text(value: object) -> Texts:
    return (str(value),)


def _as_texts(values: Sequence[object]) -> Texts:
    return tuple(map(str, values))
