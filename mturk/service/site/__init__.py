"""Where people work: the worker site, and the separate origin that shows the questions."""
