"""Where a Redis server is, read from its URL. Needs no client library, so that `turnout check` can judge it anywhere."""

from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from turnout.errors import ConfigError

OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_EXAMPLE = "expected redis://HOST:6379/0, or rediss:// for TLS"


class Address(Struct, frozen=True):
    """A Redis server and one of its databases. Shown without the password. `options`: files for TLS, by the names of
    `OPTIONS`."""

    host: str
    port: int = 6379
    db: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False
    options: dict[str, str] = {}

    def __repr__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}/{self.db}"


def parse(url: str) -> Address:
    """The address in `redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DB][?ssl_ca_certs=FILE...]`.

    Raises ConfigError; no message repeats any of the URL but names of options.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        hint = "; characters such as / # ? @ : in a password are written as %2F %23 %3F %40 %3A"
        raise _wrong(f"not a Redis URL: {_EXAMPLE}{hint}") from None
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or port == 0 or parts.fragment:
        raise _wrong(f"not a Redis URL: {_EXAMPLE}")
    db = parts.path.strip("/") or "0"
    if not (db.isascii() and db.isdigit() and len(db) <= 5):
        raise _wrong(f"the path of a Redis URL is the number of a database: {_EXAMPLE}")
    for name, _ in query:
        if name not in OPTIONS:
            raise _wrong(f"unknown option `{name[:40]}` in the Redis URL; one of: {', '.join(OPTIONS)}")
    if query and parts.scheme != "rediss":
        raise _wrong(f"`{query[0][0]}` is for TLS, whose URL begins with rediss://")
    return Address(
        host=unquote(parts.hostname),
        port=port or 6379,
        db=int(db),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        tls=parts.scheme == "rediss",
        options=dict(query),
    )


def _wrong(message: str) -> ConfigError:
    return ConfigError(message, key="sessions.url")
