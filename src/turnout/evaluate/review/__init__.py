"""Review: an operator's written conditions for going back to one model, checked on a recent period."""
