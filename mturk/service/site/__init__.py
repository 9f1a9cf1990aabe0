"""The worker site, and the separate origin that serves the questions."""
