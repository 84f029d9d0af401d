"""The stage router: what the tool results show decides which of two models serves."""
