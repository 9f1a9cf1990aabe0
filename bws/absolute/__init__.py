"""One scale across dialogues: anchors, which relate the judgments of different groups, and their model."""

from bws.absolute.design import plan_anchors
from bws.absolute.files import Anchors, read_anchors, read_plan, write_anchors, write_plan
from bws.absolute.scores import AbsoluteScale, absolute_scale
from bws.absolute.simulation import simulate_anchors

__all__ = [
    "AbsoluteScale",
    "Anchors",
    "absolute_scale",
    "plan_anchors",
    "read_anchors",
    "read_plan",
    "simulate_anchors",
    "write_anchors",
    "write_plan",
]
