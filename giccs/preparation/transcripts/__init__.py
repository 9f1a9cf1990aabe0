"""From transcripts in other people's forms to dialogues: a module a form, and one that puts them together."""
