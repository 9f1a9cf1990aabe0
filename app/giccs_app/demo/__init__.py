"""The end-to-end demo: dialogues, tuples, HITs, judgments, scores, benchmark, models, report."""
