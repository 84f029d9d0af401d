"""Calibration: a router's numbers chosen on one part of recorded tasks under a bound on tasks lost, and judged on the rest."""
