"""Models behind an OpenAI-compatible server.

chat          text generation models
completions   models that return token likelihoods
server        address, key, prices, usage
requests      requests and their answers, with cache and concurrency
cache         answers on disk, so that reruns cost nothing
client        a single request to the server, with error handling
"""
