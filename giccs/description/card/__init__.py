"""Publication of a benchmark: its dataset card, data and metadata."""
