"""Metrics with intervals, the noise ceiling and comparisons of arrays; results and their store."""
