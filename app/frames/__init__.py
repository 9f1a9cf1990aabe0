"""What the explorer shows, as data frames: pure functions of a study, its judgments and its results."""
