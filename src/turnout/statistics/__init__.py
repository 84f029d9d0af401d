"""Intervals, resamples, paired tests and power: what figures of any kind are worth. Pure."""
