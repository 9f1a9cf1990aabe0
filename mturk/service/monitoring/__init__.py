"""What tells an operator how the service does: logs, metrics, health; see docs/study.md."""
