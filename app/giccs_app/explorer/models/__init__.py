"""The page "Models": scores of pairs, answers to multiple-choice questions, and metrics of any other task."""
