"""Real faults against real processes, and whether what is promised is kept (`make chaos`)."""
