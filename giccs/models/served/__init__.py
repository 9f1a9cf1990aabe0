"""Models behind an OpenAI-compatible server.

chat          text generation models
responses     details of their answers
completions   models that return token likelihoods
embeddings    encoders
server        address, key, prices, usage
requests      requests and their answers, with cache and concurrency
cache         answers on disk, so that reruns cost nothing
claims        requests that this process is sending, so that concurrent runs do not send them
budget        limit of the cost
client        a single request to the server, with error handling
"""
