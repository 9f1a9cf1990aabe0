"""The requester API: wire protocol, signatures and operations."""
