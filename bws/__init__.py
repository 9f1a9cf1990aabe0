"""Best–worst scaling: tuples, scores, reliability and agreement. Knows ids, nothing of dialogues."""
