"""The advisor gate: a stronger model approves what the executor claims, or sends it back with a plan."""
