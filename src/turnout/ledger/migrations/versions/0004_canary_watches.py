"""What the watches of canaries know, so that they go on after a restart."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "canary_watches",
        sa.Column("route", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("settings", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("turns", sa.BigInteger, nullable=False),
        sa.Column("outcomes", sa.BigInteger, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("canary_watches")
