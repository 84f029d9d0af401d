"""What retrieval agents look up: a corpus as n-ary facts over entities, kept in files and searched along two paths."""
