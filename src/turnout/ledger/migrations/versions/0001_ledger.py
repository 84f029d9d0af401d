"""Turns, messages and outcomes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "turns",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("route", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("agent", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("ended", sa.String, nullable=False),
        sa.Column("cost_usd", sa.Float),
        sa.Column("cost_gap", sa.String, nullable=False),
        sa.Column("known_usd", sa.Float, nullable=False),
        sa.Column("aside_usd", sa.Float, nullable=False),
        sa.Column("input_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger, nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger, nullable=False),
        sa.Column("first_byte_s", sa.Float),
        sa.Column("total_s", sa.Float, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("request_skeleton", sa.LargeBinary),
        sa.Column("request_parts", sa.LargeBinary),
        sa.Column("response", sa.LargeBinary),
    )
    op.create_index("turns_at", "turns", ["at"])
    op.create_index("turns_session", "turns", ["session", "at"])
    op.create_index("turns_route", "turns", ["route", "at"])
    op.create_table(
        "messages",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("messages_session", "messages", ["session"])
    op.create_table(
        "outcomes",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("turn", sa.String, nullable=False),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
    )
    op.create_index("outcomes_turn", "outcomes", ["turn"])
    op.create_index("outcomes_session", "outcomes", ["session"])


def downgrade() -> None:
    for table in ("outcomes", "messages", "turns"):
        op.drop_table(table)
