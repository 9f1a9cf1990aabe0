"""Evaluation of language models: do they judge whether two utterances mean the same in a conversation?"""
