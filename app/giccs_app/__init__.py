"""The score explorer, the HTML report and the end-to-end demo."""

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # before anything else is imported
