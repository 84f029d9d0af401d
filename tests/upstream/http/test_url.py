"""Addresses and heads, without a socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.upstream.http.proxy import Proxies, Proxy
from turnout.upstream.http.url import Url, request_head


@pytest.mark.parametrize(
    ("text", "origin", "line", "host"),
    [
        ("http://a", "http://a:80", b"GET / ", b"a"),
        ("HTTP://A.Example:80/x", "http://a.example:80", b"GET /x ", b"a.example"),
        ("https://a:443/v1/?q=1#part", "https://a:443", b"GET /v1/?q=1 ", b"a"),
        ("https://a:80", "https://a:80", b"GET / ", b"a:80"),
        ("http://[::1]:8000/v1", "http://[::1]:8000", b"GET /v1 ", b"[::1]:8000"),
        (
            "https://bücher.example/ü%20?ä",
            "https://xn--bcher-kva.example:443",
            b"GET /%C3%BC%20?%C3%A4 ",
            b"xn--bcher-kva.example",
        ),
        ("http://a/b:c@d/models/x:generate", "http://a:80", b"GET /b:c@d/models/x:generate ", b"a"),
    ],
)
def test_parsed(text, origin, line, host):
    url = Url(text)
    assert url.origin == origin
    assert url.prefix("GET") == line + b"HTTP/1.1\r\nhost: " + host + b"\r\naccept-encoding: identity"
    assert url.prefix("GET") is url.prefix("GET")
    assert repr(url) == f"Url({origin!r})"


@pytest.mark.parametrize(
    "text",
    [
        "", "a/b", "ftp://a", "http://", "http:///x", "http://a:b/", "http://a:99999/", "http://u:s3cret@a/", "http://s3cret@a/",
        "http://a b/", "http://a/\r\nx: s3cret", "http://a/\ts3cret", "http://[::g]/", "http://a,s3cret/", "http://a\\s3cret/",
    ],
)  # fmt: skip
def test_refused_without_repeating_it(text):
    with pytest.raises(ValueError, match=r"URL|IPv6|netloc") as caught:
        Url(text)
    assert "s3cret" not in str(caught.value)


def test_method_must_be_a_token():
    with pytest.raises(ValueError, match="token"):
        Url("http://a").prefix("GET / HTTP/1.1\r\nx:")


@given(st.lists(st.tuples(st.from_regex(rb"x-[a-zA-Z0-9-]{1,12}", fullmatch=True), st.binary(max_size=20)), max_size=8))
def test_a_head_has_one_line_per_header_or_is_refused(headers):
    prefix = Url("http://a").prefix("POST")
    unsafe = any(byte in value for _, value in headers for byte in (b"\r", b"\n", b"\0"))
    if unsafe:
        with pytest.raises(ValueError, match="holds a line break or NUL"):
            request_head(prefix, headers, 3)
        return
    lines = request_head(prefix, headers, 3).split(b"\r\n")
    sent = [tuple(line.split(b": ", 1)) for line in lines[3:-3]]
    assert sent == [(name.lower(), value) for name, value in headers]
    assert lines[-3:] == [b"content-length: 3", b"", b""]


def test_nothing_breaks_out_when_counts_would_cancel_out():
    """A value that adds a line must not be balanced by another that lacks one."""
    with pytest.raises(ValueError, match="x-b"):
        request_head(Url("http://a").prefix("POST"), [(b"x-a", b""), (b"x-b", b"\r\nx-c: 1")], 0)


HOSTS = {
    "*": [("a.example", 80, True)],
    "a.example": [("a.example", 443, True), ("b.a.example", 443, True), ("ba.example", 443, False)],
    ".a.example": [("a.example", 443, True), ("b.a.example", 443, True), ("ba.example", 443, False)],
    "*.a.example": [("b.a.example", 443, True), ("c.example", 443, False)],
    "x, A.Example:8080 ,": [("a.example", 8080, True), ("a.example", 80, False)],
    "10.0.0.0/8": [("10.1.2.3", 80, True), ("11.1.2.3", 80, False), ("ten.example", 80, False)],
    "::1": [("::1", 80, True), ("::2", 80, False)],
    "[::1]:80": [("::1", 80, True), ("::1", 81, False)],
    "": [("a.example", 80, False)],
    "no/net": [("no", 80, False)],
}


@pytest.mark.parametrize("entry", HOSTS)
def test_no_proxy(entry):
    proxies = Proxies({"ALL_PROXY": "http://p:3128", "NO_PROXY": entry})
    for host, port, direct in HOSTS[entry]:
        assert (proxies.find("https", host, port) is None) == direct


def test_which_variable_counts():
    assert Proxies({}).find("http", "a", 80) is None
    both = Proxies({"http_proxy": "low:1", "HTTP_PROXY": "up:2", "HTTPS_PROXY": "s:3", "ALL_PROXY": "all:4"})
    assert both.find("http", "a", 80) == Proxy("low", 1)
    assert both.find("https", "a", 443) == Proxy("s", 3)
    assert Proxies({"all_proxy": "all:4"}).find("https", "a", 443) == Proxy("all", 4)
    assert Proxies({"HTTP_PROXY": "up:2", "REQUEST_METHOD": "GET"}).find("http", "a", 80) is None


@pytest.mark.parametrize("text", ["socks5://s3cret@h:1", "https://s3cret:x@h:1", "http://s3cret:x@h:port", "http://"])
def test_a_proxy_we_cannot_use_is_named_by_its_variable(text):
    with pytest.raises(ValueError, match=r"^HTTPS_PROXY") as caught:
        Proxies({"HTTPS_PROXY": text})
    assert "s3cret" not in str(caught.value)


def test_credentials_do_not_show():
    proxy = Proxies({"HTTPS_PROXY": "http://user:s3cret@p:1"}).find("https", "a", 443)
    assert proxy is not None
    assert proxy.authorization == b"Basic dXNlcjpzM2NyZXQ="
    assert "s3cret" not in repr(proxy)
    assert "dXNl" not in repr(proxy)
