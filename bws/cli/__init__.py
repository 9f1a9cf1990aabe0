"""bws-make-tuples, bws-simulate, bws-score, bws-reliability, bws-agreement. Thin: others do the work.

Nothing heavy is imported before a command runs, so that --help is quick.
"""

from bws.cli.consistency import agreement, reliability
from bws.cli.designs import make_tuples, simulate
from bws.cli.scores import score

__all__ = ["agreement", "make_tuples", "reliability", "score", "simulate"]
