"""What routers are told of the configured targets before anything is known of their health."""

from turnout.gateway.config import Config
from turnout.pricing import Prices, Rates
from turnout.pricing.caching import caching_of
from turnout.routing.core import TargetFacts, TargetName
from turnout.upstream.target import Target


def facts(config: Config, prices: Prices | None = None) -> dict[TargetName, TargetFacts]:
    """Facts of every target, all healthy. `prices`: where to look prices up; None = the shipped snapshot."""
    prices = prices or Prices.load()
    found = {}
    for name, target in config.targets.items():
        priced = rates_of(target, config, prices)
        rates = priced or Rates()
        form = config.upstreams[target.upstream].format
        found[name] = TargetFacts(
            name=name,
            model=target.model,
            format=form,
            context_window=target.context_window,
            capabilities=frozenset(target.capabilities) if target.capabilities is not None else None,
            input_price=rates.input,
            output_price=rates.output,
            cache_read_price=rates.cache_read,
            cache_write_price=rates.cache_write_5m,
            rates=priced,
            caching=caching_of(target.price_id or target.model, form, priced),
        )
    return found


def rates_of(target: Target, config: Config, prices: Prices) -> Rates | None:
    """The rates of a target: its own price, else the snapshot's for its model at its upstream; None when unpriced."""
    base_url = config.upstreams[target.upstream].base_url
    return prices.rates(target.price_id or target.model, base_url=base_url, override=target.price)
