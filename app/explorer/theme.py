"""Colours that the colour-blind tell apart and that stand out on white and on black.

Okabe and Ito, Color Universal Design (2008). Marks take them; text and axes take none, so that the page's
theme (light or dark) colours these. A second channel (shape, dash, place) says what colour says.
"""

from __future__ import annotations

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PALETTE",
    "PURPLE",
    "SKY",
    "VERMILION",
]

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
VERMILION = "#D55E00"
SKY = "#56B4E9"
GREY = "#8C8C8C"
"""For what stands back: reference lines, intervals, what is not chosen. 3.4:1 on white, 5.6:1 on black."""

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY)
"""In the order in which categories take them; yellow is left out, as it is hard to see on white."""
