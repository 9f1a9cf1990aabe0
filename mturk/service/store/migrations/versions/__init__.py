"""Migrations from each schema version to the next, oldest first."""
