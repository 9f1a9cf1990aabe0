"""What a person opens: the explorer and the demo."""

from bws.interrupts import handle_interrupts

handle_interrupts()  # before anything else is imported
