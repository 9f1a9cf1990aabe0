"""A service that speaks MTurk's protocol: what requesters call, and where workers work."""
