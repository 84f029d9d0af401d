"""The dashboard: one page that reads `/v1/stats` and `/v1/turns`, and the headers that keep it to that."""

import base64
import functools
import hashlib
import re
from pathlib import Path

FILE = Path(__file__).parent / "index.html"


@functools.cache
def page() -> tuple[bytes, dict[str, str]]:
    """The page and its headers. Its own script and style may run, by their digests, and nothing else."""
    body = FILE.read_bytes()
    policy = (
        "default-src 'self'",
        f"script-src {_digests(body, b'script')}",
        f"style-src {_digests(body, b'style')}",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    headers = {
        "content-security-policy": "; ".join(policy),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return body, headers


def _digests(body: bytes, element: bytes) -> str:
    inline = re.findall(rb"<%b>(.*?)</%b>" % (element, element), body, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in inline)
