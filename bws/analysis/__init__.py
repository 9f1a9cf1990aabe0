"""Analyses of judgments: the concept, the declarations, and their pictures."""
