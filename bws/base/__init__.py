"""What every part of the workflow uses: problems, texts, tables, options and commands."""
