"""Import of transcripts in various formats as dialogues."""
