"""URLs of Redis servers: read whole, shown without the password, refused with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.errors import ConfigError
from turnout.sessions.address import Address, parse


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://cache", Address("cache")),
        ("redis://cache:7000/3", Address("cache", 7000, 3)),
        ("redis://:p%2Fw%40@cache/", Address("cache", password="p/w@")),
        ("redis://me:pw@[::1]:6380", Address("::1", 6380, username="me", password="pw")),
        (
            "rediss://cache?ssl_ca_certs=/etc/ca.pem",
            Address("cache", tls=True, options={"ssl_ca_certs": "/etc/ca.pem"}),
        ),
    ],
)
def test_a_url_is_read(url: str, expected: Address):
    assert parse(url) == expected


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis:", "redis://HOST:6379/0"),
        ("redis://", "redis://HOST:6379/0"),
        ("http://cache", "redis://HOST:6379/0"),
        ("redis://cache:port", "%2F"),
        ("redis://cache:0", "redis://HOST:6379/0"),
        ("redis://cache:70000", "redis://HOST:6379/0"),
        ("redis://:hu/sh@cache", "%2F"),
        ("redis://:hush@cache/zero", "number of a database"),
        ("redis://cache/-1", "number of a database"),
        ("redis://cache#hush", "redis://HOST:6379/0"),
        ("redis://cache?password=hush", "unknown option `password`"),
        ("rediss://cache?ssl_cert_reqs=none", "unknown option `ssl_cert_reqs`"),
        ("redis://cache?ssl_ca_certs=ca.pem", "rediss://"),
        ("redis://[cache", "not a Redis URL"),
    ],
)
def test_a_wrong_url_is_refused_without_repeating_it(url: str, says: str):
    with pytest.raises(ConfigError, match=says) as raised:
        parse(url)
    assert "hu" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.key == "sessions.url"


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_config_error(rest: str):
    try:
        address = parse(f"redis://{rest}")
    except ConfigError:
        return
    assert address.host


@given(st.text(st.characters(codec="utf-8"), min_size=12, max_size=20))
def test_an_address_is_shown_without_its_password(password: str):
    address = Address("cache", 7000, 2, username="me", password=password)
    assert f"{address} {address!r} {[address]}" == "cache:7000/2 cache:7000/2 [cache:7000/2]"
