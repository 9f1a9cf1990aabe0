"""Import from and export to other evaluation tools."""
