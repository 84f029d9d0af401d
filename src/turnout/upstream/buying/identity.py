"""What the replies of a target depend on."""

import hashlib

import msgspec

from turnout.upstream.target import Target, Upstream


def revision(target: Target, upstream: Upstream, stated: str = "") -> str:
    """The identity of what answers under a target's name. Addresses, keys and prices are no part of it."""
    shaping = [
        upstream.format,
        upstream.body,
        target.model,
        target.extra_body,
        target.prompt,
        target.effort,
        target.thinking,
        stated,
    ]
    return hashlib.sha256(msgspec.json.encode(shaping, order="deterministic")).hexdigest()[:16]
