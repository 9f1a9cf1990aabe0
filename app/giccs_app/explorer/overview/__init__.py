"""The page "Overview": the distribution of the scores, the noise ceiling, reliability and agreement."""
