"""Analyses of judgments: what is asked, declared once, and the commands made from the declarations."""
