"""Projected cost of studies of a million items and sweeps of a thousand models, from small runs."""
