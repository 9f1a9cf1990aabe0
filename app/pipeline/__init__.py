"""The whole pipeline in one go: dialogues, tuples, HITs, judgments, scores, benchmark, models, report."""
