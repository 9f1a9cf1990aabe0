"""What a person opens: the explorer and the demo."""
