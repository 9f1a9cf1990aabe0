"""The page "Errors": the largest residuals of a model, or the questions that it answers wrongly."""
