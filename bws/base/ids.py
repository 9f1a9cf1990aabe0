"""Ids of items, tuples, groups and annotators in one form."""

from __future__ import annotations

import unicodedata
from numbers import Integral


def normal_id(text: str) -> str:
    """Return the normalised form of an id: Unicode NFC without surrounding white space.

    >>> normal_id(" u\u0308ber ") == "über"
    True
    """
    return unicodedata.normalize("NFC", text).strip()


def id_of(value: object) -> str:
    """Return the normalised id that is given as text or as an integer, also of NumPy and PyArrow.

    Raises TypeError for other values: the spelling of an id such as 1.0 or True would be arbitrary.

    >>> id_of(7), id_of(" a")
    ('7', 'a')
    """
    plain = value.as_py() if hasattr(value, "as_py") else value
    if isinstance(plain, str):
        return normal_id(plain)
    if isinstance(plain, bool) or not isinstance(plain, Integral):
        raise TypeError(f"an id is {plain!r}; expected text or an integer")
    return str(int(plain))
