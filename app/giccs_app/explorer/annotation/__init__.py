"""The page "Annotation": the progress of a study, from its judgments or its ledger, and its annotators."""
