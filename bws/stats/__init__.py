"""Estimates and the methods of their intervals."""
