"""To and from other people's evaluation tools."""
