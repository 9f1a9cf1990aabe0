"""From transcripts to dialogues with candidates, and the expert check."""
