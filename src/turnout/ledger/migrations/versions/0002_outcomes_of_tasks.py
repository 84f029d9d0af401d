"""Outcomes of tasks beside those of turns and sessions, and how far files were imported."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("outcomes", sa.Column("key", sa.String))
    for name in ("source", "task", "model", "harness", "trial"):
        op.add_column("outcomes", sa.Column(name, sa.String, nullable=False, server_default=""))
    op.add_column("outcomes", sa.Column("success", sa.Boolean))
    op.add_column("outcomes", sa.Column("cost_usd", sa.Float))
    for name in ("steps", "input_tokens", "output_tokens"):
        op.add_column("outcomes", sa.Column(name, sa.BigInteger))
    op.create_index("outcomes_key", "outcomes", ["key"], unique=True)
    op.create_index("outcomes_task", "outcomes", ["task", "model"])
    op.create_table(
        "imports",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("stored", sa.BigInteger, nullable=False),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("imports")
    for index in ("outcomes_task", "outcomes_key"):
        op.drop_index(index, "outcomes")
    with op.batch_alter_table("outcomes") as table:
        for name in (
            "output_tokens",
            "input_tokens",
            "steps",
            "cost_usd",
            "success",
            "trial",
            "harness",
            "model",
            "task",
        ):
            table.drop_column(name)
        table.drop_column("source")
        table.drop_column("key")
