"""What retrieval agents look up: a corpus as n-ary facts over entities, kept in files and searched along two paths."""

from turnout.knowledge.opening import Knowledge, open_knowledge

__all__ = ["Knowledge", "open_knowledge"]
