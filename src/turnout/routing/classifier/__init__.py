"""The classifier: a model says which target a request needs."""
