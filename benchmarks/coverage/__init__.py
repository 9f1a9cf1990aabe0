"""Simulated studies of known truth: do intervals cover, and are estimates without bias?"""
