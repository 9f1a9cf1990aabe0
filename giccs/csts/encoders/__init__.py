"""Training of encoders for similarity under a condition (C-STS, 4.1)."""
