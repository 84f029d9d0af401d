"""Statistics that stay valid however often one looks: intervals and tests for data that keeps coming in. Pure."""
