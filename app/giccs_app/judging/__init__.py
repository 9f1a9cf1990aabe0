"""Judgments of language models: of dialogues, and of the plain items of a study of mturk."""
