"""Description of a benchmark: statistics, the distribution of scores, the dataset card."""
