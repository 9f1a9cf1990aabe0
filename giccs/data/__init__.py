"""giccs-sample: original German dialogues that ship with the package."""
