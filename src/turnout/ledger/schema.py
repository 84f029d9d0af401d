"""The tables of the ledger, for SQLite and PostgreSQL alike.

Migrations in `migrations/` build the same tables; a test compares the two.
"""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text

REVISION = "0005"
"""The schema this code reads and writes: the newest migration."""

metadata = MetaData()
_serial = BigInteger().with_variant(Integer, "sqlite")

turns = Table(
    "turns",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    Column("at", Float, nullable=False),
    Column("route", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("session", String, nullable=False),
    Column("agent", String, nullable=False),
    Column("target", String, nullable=False),
    Column("source", String, nullable=False),
    Column("ended", String, nullable=False),
    # The whole turn in USD, None where any part is unknown; `cost_gap` is 'unpriced' or 'unknown' then.
    Column("cost_usd", Float),
    Column("cost_gap", String, nullable=False),
    # What is known of the cost, and the part of it spent on calls whose reply did not reach the client.
    Column("known_usd", Float, nullable=False),
    Column("aside_usd", Float, nullable=False),
    # Over all calls of the turn.
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cache_read_tokens", BigInteger, nullable=False),
    Column("cache_write_tokens", BigInteger, nullable=False),
    Column("first_byte_s", Float),
    Column("total_s", Float, nullable=False),
    # The rest of the record as JSON; bodies are apart.
    Column("record", Text, nullable=False),
    # Under capture `full`: the request as the text between its parts and the digests of the parts, and the reply.
    Column("request_skeleton", LargeBinary),
    Column("request_parts", LargeBinary),
    Column("response", LargeBinary),
    Index("turns_at", "at"),
    Index("turns_session", "session", "at"),
    Index("turns_route", "route", "at"),
)

messages = Table(
    "messages",
    metadata,
    Column("digest", LargeBinary, primary_key=True),  # of the lane and the content: stored once per lane
    Column("session", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("messages_session", "session"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("turn", String, nullable=False),
    Column("session", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("outcome", Text, nullable=False),
    # Names an outcome that is stored once however often it is imported; NULL for one that was reported.
    Column("key", String),
    Column("source", String, nullable=False, server_default=""),
    Column("task", String, nullable=False, server_default=""),
    Column("model", String, nullable=False, server_default=""),
    Column("harness", String, nullable=False, server_default=""),
    Column("trial", String, nullable=False, server_default=""),
    Column("success", Boolean),
    Column("cost_usd", Float),
    Column("steps", BigInteger),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Index("outcomes_turn", "turn"),
    Index("outcomes_session", "session"),
    Index("outcomes_key", "key", unique=True),
    Index("outcomes_task", "task", "model"),
)

imports = Table(
    "imports",
    metadata,
    # Digest of the file and of how it was read; `stored` of its rows are stored, all of them when `done`.
    Column("key", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("stored", BigInteger, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("report", Text, nullable=False),
)

canaries = Table(
    "canaries",
    metadata,
    # Canaries that were stopped, each once.
    Column("route", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("at", Float, nullable=False),
    Column("metric", String, nullable=False),
    Column("reason", Text, nullable=False),
)

canary_watches = Table(
    "canary_watches",
    metadata,
    # How far the watch of a canary has read the turns and outcomes, and what it knows by then.
    Column("route", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("settings", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("turns", BigInteger, nullable=False),
    Column("outcomes", BigInteger, nullable=False),
    Column("state", LargeBinary, nullable=False),
)

shadows = Table(
    "shadows",
    metadata,
    # What each shadow decided beside a turn: another target than was chosen where there is a `flip`, none where `agrees` is NULL.
    Column("seq", _serial, primary_key=True, autoincrement=True),
    Column("turn", String, nullable=False),
    Column("shadow", String, nullable=False),
    Column("policy", String, nullable=False),
    Column("at", Float, nullable=False),
    Column("route", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("session", String, nullable=False),
    Column("was", String, nullable=False),
    Column("target", String, nullable=False),
    Column("source", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("agrees", Boolean),
    # What the turn's answer and the calls made to decide are reckoned to cost on both ways; NULL = not known.
    Column("live_usd", Float),
    Column("usd", Float),
    Column("flip", Text),
    Index("shadows_turn", "turn", "shadow", unique=True),
    Index("shadows_at", "shadow", "at"),
)

version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
