"""The HTML report of a study and its models; each number states the command that prints it."""
