"""Designs of tuples: generation, extension and audit."""

from bws.design.audit import Audit, audit
from bws.design.extend import extend_tuples
from bws.design.fresh import fresh_rounds
from bws.design.make import make_tuples

__all__ = ["Audit", "audit", "extend_tuples", "fresh_rounds", "make_tuples"]
