"""A benchmark made ready to be published: its card, its data, its metadata."""
