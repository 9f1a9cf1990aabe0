"""Soak test of the service: a simulated study of one hour (`python -m robustness.soak`)."""
