"""Savings, stopping and honesty of adaptive studies, in simulated studies and on real judgments."""
