"""Prices: what a model's tokens cost, and what a call cost. Pure functions over a snapshot that ships with the package."""

from turnout.pricing.prices import Prices
from turnout.pricing.rates import Cost, Price, Rates, cost, rates_of

__all__ = ["Cost", "Price", "Prices", "Rates", "cost", "rates_of"]
