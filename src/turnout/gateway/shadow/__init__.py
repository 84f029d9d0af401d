"""Routers that decide turns beside the one that serves them: no call is made, no turn is touched."""
