"""Collaboration: models that score one another, and improve an answer until those it is shown to agree."""
