"""The gateway's outgoing HTTP/1.1 client: bytes to an upstream and bytes back, nothing else.

No redirects, no cookies, no retries with judgement: the layers above decide those. Every failure is an
`UpstreamError` (kinds `timeout`, `unavailable`, `malformed`) whose message names the phase and
`scheme://host:port`, never a path, a header or a credential.
"""

from turnout.upstream.http.client import Client
from turnout.upstream.http.deadlines import Timeouts
from turnout.upstream.http.response import Response
from turnout.upstream.http.url import Url

__all__ = ["Client", "Response", "Timeouts", "Url"]
