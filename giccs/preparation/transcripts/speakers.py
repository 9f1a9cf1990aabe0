"""Who is the user and who the system, whatever a transcript calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["roles"]

USER = (
    "user", "usr", "u", "nutzer", "nutzerin", "benutzer", "benutzerin", "kunde", "kundin", "anrufer",
    "anruferin", "mensch", "human", "customer", "caller", "proband", "probandin", "vp",
)  # fmt: skip
SYSTEM = (
    "system", "sys", "s", "sma", "smartkom", "smartakus", "wizard", "assistant", "assistent", "agent",
    "bot", "machine", "maschine", "computer",
)  # fmt: skip


def roles(
    speakers: Iterable[str], user: Sequence[str] = (), system: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return ``user`` or ``system`` for each speaker's name that is one of them; others are not in it.

    Names in `user` and `system` come first, then the usual ones, whatever their case.

    >>> roles(["Nutzerin", "SMA", "Herr Hoff"])
    {'Nutzerin': 'user', 'SMA': 'system'}
    >>> roles(["AAA", "BBB"], user=["aaa"], system=["bbb"])
    {'AAA': 'user', 'BBB': 'system'}

    Raises ValueError where a name is given for both.
    """
    both = {name.casefold() for name in user} & {name.casefold() for name in system}
    if both:
        raise ValueError(
            f"{', '.join(sorted(both))}: a speaker is the user or the system, not both"
        )
    known = dict.fromkeys(USER, "user") | dict.fromkeys(SYSTEM, "system")
    known |= {name.casefold(): "user" for name in user}
    known |= {name.casefold(): "system" for name in system}
    return {name: known[name.casefold()] for name in speakers if name.casefold() in known}
