"""How well do language models judge whether two utterances mean the same, in a conversation?"""
