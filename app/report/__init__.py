"""The HTML report of a study and its models; every number names the command that prints it."""
