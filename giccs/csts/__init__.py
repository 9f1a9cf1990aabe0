"""Conditional semantic textual similarity: C-STS and its linguistic reannotation, L-CSTS."""
