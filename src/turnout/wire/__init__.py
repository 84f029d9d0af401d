"""Wire formats: bytes <-> conversation."""
