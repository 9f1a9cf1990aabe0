"""A stand-in for a model that writes: it looks its answers up in a table, so that a test knows them.

What real models write is not known beforehand; those are asked in the tests that say so.
"""


class Tabled:
    """Writes what a function of the prompt says, and remembers what it was asked."""

    name = "tabled"
    identity = {"kind": "tabled"}  # noqa: RUF012

    def __init__(self, answer):
        self._answer = answer
        self.asked, self.max_tokens = [], []

    def generate(self, prompts, max_tokens, progress=None):
        self.asked += prompts
        self.max_tokens.append(max_tokens)
        return [self._answer(prompt) for prompt in prompts]

    def environment(self):
        return {}


class TabledChat(Tabled):
    """One with a chat template."""

    def render_chat(self, text):
        return f"<user>{text}<assistant>"
