"""python -m giccs: the command `giccs`."""

from giccs_app.cli import main

main(prog_name="giccs")
