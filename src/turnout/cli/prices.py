"""`turnout prices`: the price table that turns are charged by."""

from typing import Annotated

import typer

from turnout.cli import exits, options, output

app = typer.Typer(help="Look at or refresh the price table.", no_args_is_help=True, rich_markup_mode=None)

_RATES = (
    ("input", "input"),
    ("output", "output"),
    ("cache_read", "cache read"),
    ("cache_write_5m", "cache write"),
    ("cache_write_1h", "cache write, 1 hour"),
    ("reasoning", "reasoning"),
)


@app.command("show")
def show(
    model: Annotated[str, typer.Argument(help="Model id, such as claude-haiku-4-5 or openai/gpt-5.1.")],
    provider: Annotated[str, typer.Option(help="Provider, where the id alone does not tell.")] = "",
    base_url: Annotated[str, typer.Option(metavar="URL", help="Base URL of the upstream; tells the provider.")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Print a model's rates in USD per million tokens."""
    from turnout.pricing import Prices

    table = Prices.load()
    rates = table.rates(model, provider=provider, base_url=base_url)
    if rates is None:
        step = (
            "give --provider, or state `price` or `price_id` in the target; an unpriced model is never counted as free"
        )
        raise exits.CommandError(f"no price is known for {model}", exits.NOT_FOUND, step)
    if as_json:
        output.emit({"model": model, "source": table.table.source, "rates": rates})
        return
    output.emit_text(f"{model}   USD per million tokens   ({table.table.source})")
    for tier in (rates, *rates.tiers):
        if tier.above_tokens:
            output.emit_text(f"  prompts over {tier.above_tokens:,} tokens")
        for field, label in _RATES:
            value = getattr(tier, field)
            if value is not None:
                output.emit_text(f"  {label:<20} {value:g}")
    if rates.request_usd:
        output.emit_text(f"  {'per request':<20} {rates.request_usd:g} USD")


@app.command("update")
def update(as_json: options.AsJson = False) -> None:
    """Rebuild the price table.

    From the installed genai-prices package; pip install -U genai-prices brings newer prices."""
    from turnout.pricing import Prices, snapshot

    before = Prices.load().table
    data = snapshot.build()
    try:
        snapshot.PATH.write_bytes(data)
    except OSError as error:
        raise exits.CommandError(
            f"cannot write {snapshot.PATH}: {error.strerror}", step="run it as the installing user"
        ) from None
    after = Prices.load().table
    if as_json:
        output.emit({"before": before.source, "after": after.source, "providers": len(after.providers)})
    else:
        output.emit_text(f"{before.source} -> {after.source}, {len(after.providers)} providers")
