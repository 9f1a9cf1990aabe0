"""bws-make-tuples, bws-simulate, bws-score, bws-reliability, bws-agreement. Thin: others do the work.

Nothing heavy is imported before a command runs, so that --help is quick.
"""

from bws.interrupts import handle_interrupts

handle_interrupts()  # before anything else is imported

from bws.cli.consistency import agreement, reliability  # noqa: E402
from bws.cli.designs import make_tuples, simulate  # noqa: E402
from bws.cli.scores import score  # noqa: E402

__all__ = ["agreement", "make_tuples", "reliability", "score", "simulate"]
