"""Texts -> vectors of length 1, by one protocol."""

from turnout.knowledge.embedding.embedder import EMBEDDERS, Embedder, embedder

__all__ = ["EMBEDDERS", "Embedder", "embedder"]
