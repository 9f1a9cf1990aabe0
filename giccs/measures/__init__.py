"""Arrays to numbers: metrics with intervals, the noise ceiling, comparisons; results and their store."""
