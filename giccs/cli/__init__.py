"""The giccs commands, one module each, named by the entry points."""

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # Before any other import.
