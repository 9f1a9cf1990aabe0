"""Running models on tasks: runs, engines, recipes, sweeps, exports to other harnesses."""
