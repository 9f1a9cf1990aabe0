"""The page "Dialogues": one dialogue with its candidates, their scores and single judgments."""
