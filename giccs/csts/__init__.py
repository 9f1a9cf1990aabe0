"""Similarity under a condition: C-STS and its linguistic re-reading, L-CSTS."""
