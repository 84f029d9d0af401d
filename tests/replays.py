"""Decides the recorded turns of a gateway again, from its ledger alone."""

from tests.running import Running
from turnout.evaluate.replay import differences, replay
from turnout.ledger.store import Ledger


def replayed(gateway: Running) -> int:
    """How many recorded turns were decided again, each with the same outcome. Turns that no router decided, that a fault decided,
    or that continue a stored response are left out."""
    facts = gateway.gateway.models.facts()
    deadline_s = gateway.gateway.config.server.deadline_s
    count = 0
    listed = gateway.settled()
    ledger = Ledger.read(gateway.ledger_url)
    try:
        for one in listed:
            if one.why is None or one.why.source == "fault":
                continue
            record = ledger.turn(one.id)
            assert record is not None
            if record.request is not None and b'"previous_response_id"' in record.request:
                continue
            decision = replay(record, gateway.gateway.config.routes[record.route].router, facts, deadline_s)
            assert differences(record, decision) == [], record.id
            count += 1
    finally:
        ledger.close()
    return count
