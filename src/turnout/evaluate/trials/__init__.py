"""Trials: one command run once per arm and task under equal conditions, and what became of each run."""
