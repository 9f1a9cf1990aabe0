"""Rules shared by the API and the worker site: states, balance and eligibility."""
