"""Turnout routes every turn of an LLM agent to the model that turn needs."""

__version__ = "0.1.0"
