"""The giccs commands, a module each (an entry point names its module). Thin: the work is done elsewhere."""

from bws.interrupts import handle_interrupts

handle_interrupts()  # before anything else is imported
