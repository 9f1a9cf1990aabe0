"""Annotation studies: requester tools, worker pages, and the annotation service."""
