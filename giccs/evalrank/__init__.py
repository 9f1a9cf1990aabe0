"""EvalRank: embeddings judged by local ranking (Wang et al., 2022)."""
