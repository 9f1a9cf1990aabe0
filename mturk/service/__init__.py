"""The annotation service: a requester API compatible with Mechanical Turk, and a site for workers."""
