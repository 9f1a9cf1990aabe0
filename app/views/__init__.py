"""Charts: pure functions from a data frame to an Altair chart. No widgets here."""
