"""Causal language models: how likely is each option to follow its prompt?

records     what is asked and what is answered
source      a hub id, folder or GGUF file -> where the model lies, and that it is causal
loading     the model and its tokenizer in memory
boundary    text -> token ids, and where the option begins
tree        the options of a prompt -> one tree of tokens
masks       who sees whom, as architectures take it
forward     ways through the model: the tree in one pass, a shared cache, or option by option
likelihood  hidden states -> log-probabilities, a few rows at a time
trial       which way this model can take: found out by numbers
scoring     questions -> passes of a size that fits
model       all of it behind one call
"""

from __future__ import annotations

from giccs.models.causal.model import CausalModel, open_causal
from giccs.models.causal.records import OptionScore, Prompt, Scored

__all__ = ["CausalModel", "OptionScore", "Prompt", "Scored", "open_causal"]
