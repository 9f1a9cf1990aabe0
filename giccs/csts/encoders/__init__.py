"""Encoders that are trained to tell similarity under a condition (C-STS, 4.1)."""
