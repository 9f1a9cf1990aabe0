"""giccs design, simulate, score, reliability, agreement, verdict, next and stop.

Heavy modules are imported only when a command runs, so that --help is fast.
"""

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # Before any other import.

from bws.cli.analyses import agreement, reliability  # noqa: E402
from bws.cli.designs import make_tuples, simulate  # noqa: E402
from bws.cli.rounds import next_round, stop  # noqa: E402
from bws.cli.scores import score  # noqa: E402
from bws.cli.verdicts import verdict  # noqa: E402

__all__ = [
    "agreement",
    "make_tuples",
    "next_round",
    "reliability",
    "score",
    "simulate",
    "stop",
    "verdict",
]
