"""Does the service stay as it is while a study goes on and on: `python -m robustness.soak`, an hour of it."""
