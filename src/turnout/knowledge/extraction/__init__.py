"""The extractor that asks a model: what it is shown, what of its reply counts, and how often it is asked."""
