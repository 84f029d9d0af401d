"""Shared by all tests."""

import os

from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the code. `thorough` is for a long run by hand.
settings.register_profile(
    "turnout", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("thorough", settings.get_profile("turnout"), max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "turnout"))
