"""Annotation of similarity under a condition (C-STS): people write conditions, others judge under them."""
