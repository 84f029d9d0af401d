"""`turnout peers`: models that score one another."""

import typer

from turnout.cli import graphs, peer_review, simulated

app = typer.Typer(help="Models that score one another.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def peers() -> None:
    """Models that score one another, and what follows from it."""


app.command("review")(peer_review.review)
app.command("graph")(graphs.graph)
app.command("show")(graphs.show)
app.command("simulate")(simulated.simulate)
