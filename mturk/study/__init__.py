"""The requester's side of a study: settings, cost, ledger, publishing, collecting, review, status."""
