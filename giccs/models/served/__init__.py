"""Models behind an OpenAI-compatible server.

chat          models that answer prompts
completions   models that say how likely the tokens of a text are
server        address, key, prices, usage
requests      requests to answers: cached ones first, the others several at a time
cache         answers on disk: a rerun costs nothing
client        one request to the server, and what may come back
"""
