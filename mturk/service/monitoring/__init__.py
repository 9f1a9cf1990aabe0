"""Monitoring of the service: logs, metrics and health checks; see docs/operations/service.md."""
