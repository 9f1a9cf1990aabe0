"""One scale across dialogues: anchors, which relate the judgments of different groups, and their model."""
