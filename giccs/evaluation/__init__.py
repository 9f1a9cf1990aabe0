"""Evaluation of models on tasks: runs, engines, recipes, sweeps, exports to other tools."""
