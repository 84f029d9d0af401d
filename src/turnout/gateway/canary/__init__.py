"""Watching canaries: lanes of both arms as the ledger records them, and the stop when the candidate does worse."""
