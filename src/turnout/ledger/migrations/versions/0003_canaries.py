"""Canaries that were stopped."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "canaries",
        sa.Column("route", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("metric", sa.String, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("canaries")
