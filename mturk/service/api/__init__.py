"""The HTTP API of the service: wire protocol, signatures, and the operations that requesters call."""
