"""New studies: a folder with settings, example data and the next steps, from templates."""
