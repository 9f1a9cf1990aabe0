"""Mining of sentence pairs for C-STS: captions, embeddings, neighbours, filters and their thresholds."""
