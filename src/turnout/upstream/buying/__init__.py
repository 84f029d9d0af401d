"""Calls of models that nobody waits for: made patiently, within a budget, and kept in a journal so that none is bought twice."""
