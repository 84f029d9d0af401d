"""The ledger: what happened, kept."""

from turnout.ledger.trace import Call, Ended, TurnRecord

__all__ = ["Call", "Ended", "TurnRecord"]
