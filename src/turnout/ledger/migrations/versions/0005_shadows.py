"""What shadows decided beside turns."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "shadows",
        sa.Column("seq", _serial, primary_key=True, autoincrement=True),
        *(
            sa.Column(name, kind, nullable=False)
            for name, kind in (
                ("turn", sa.String),
                ("shadow", sa.String),
                ("policy", sa.String),
                ("at", sa.Float),
                ("route", sa.String),
                ("tenant", sa.String),
                ("session", sa.String),
                ("was", sa.String),
                ("target", sa.String),
                ("source", sa.String),
                ("reason", sa.String),
            )
        ),
        sa.Column("agrees", sa.Boolean),
        sa.Column("live_usd", sa.Float),
        sa.Column("usd", sa.Float),
        sa.Column("flip", sa.Text),
    )
    op.create_index("shadows_turn", "shadows", ["turn", "shadow"], unique=True)
    op.create_index("shadows_at", "shadows", ["shadow", "at"])


def downgrade() -> None:
    op.drop_table("shadows")
