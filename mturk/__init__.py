"""From tuples to judgments: publishing HITs, the service that shows them, and what comes back."""
