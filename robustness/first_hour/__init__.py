"""New users: the commands of pages in a fresh environment (`__main__`), and their jobs (`*.md`)."""
