"""The giccs commands, a module each (an entry point names its module). Thin: the work is done elsewhere."""
