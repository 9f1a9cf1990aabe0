"""What a benchmark contains: statistics, the distribution of scores, the data set card."""
