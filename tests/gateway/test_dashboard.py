"""The dashboard: served with a policy that keeps it to itself, parsed, and true to the structs it reads."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import msgspec
import pytest
from tests.running import Running, running

from turnout.conversation import Usage
from turnout.gateway.dashboard import FILE
from turnout.ledger.reading import Figures, Group, Page, Stats, TurnFilter
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.core import Why
from turnout.routing.stage.explain import Change, Explained, Rule, Weighed
from turnout.routing.stage.price import Quote
from turnout.signals import Observation, Signals
from turnout.wire.drops import Drop

TEXT = FILE.read_text("utf-8")
VOID = {"meta", "link", "br", "input"}
CONFIG = """
[upstreams.up]
format = "openai_chat"
base_url = "http://127.0.0.1:9/v1"
[targets.small]
upstream = "up"
model = "vendor-small"
[routes.coder]
type = "passthrough"
target = "small"
[server]
require_keys = true
operators = ["team"]
[server.tenants.team]
key_env = "TEAM_KEY"
"""
HOSTILE = "<img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Checks that elements nest, and keeps their attributes and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.inline: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.inline[self.open[-1]] = data


@pytest.fixture(scope="module")
def page() -> Elements:
    parser = Elements()
    parser.feed(TEXT)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(CONFIG, tmp_path_factory.mktemp("dashboard"), env={"TEAM_KEY": "sesame"}) as served:
        yield served


def fetch(url: str, key: str = "") -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, {k.lower(): v for k, v in reply.headers.items()}, reply.read()
    except HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def test_refers_to_nothing_elsewhere(page: Elements) -> None:
    for tag, name, value in page.attributes:
        if name in ("src", "href", "action", "poster", "srcset"):
            assert value.startswith(("#", "data:image/svg+xml,")), (tag, name, value)
        assert not name.startswith("on"), f"inline handlers do not run under the policy: <{tag} {name}>"
        assert name != "style", "style attributes do not count under the policy"
    rest = TEXT.replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"https?://|url\(|@import|\bimport\s*\(", rest)
    assert re.findall(r"\bfetch\((\w+)", page.inline["script"]) == ["BASE"]


def test_never_parses_text_as_markup_or_code(page: Elements) -> None:
    sinks = r"(inner|outer)HTML|insertAdjacentHTML|document\.write|Fragment\b|DOMParser|srcdoc|\beval\(|new Function"
    assert not re.findall(sinks, page.inline["script"])
    assert "textContent" in page.inline["script"]


def test_keeps_the_key_in_the_tab(page: Elements) -> None:
    script = page.inline["script"]
    assert "sessionStorage.setItem(KEY" in script
    assert not re.findall(r"localStorage|document\.cookie|indexedDB", script)


def test_every_field_it_reads_exists(page: Elements) -> None:
    """A variable of the script is named after the struct it holds."""
    structs: dict[str, type[Any]] = {
        "figures": Figures, "group": Group, "page": Page, "turn": TurnRecord, "call": Call, "why": Why,
        "usage": Usage, "signals": Signals, "observation": Observation, "drop": Drop,
        "explanation": Explained, "term": Weighed, "price": Quote, "change": Change, "rule": Rule,
    }  # fmt: skip
    for variable, struct in structs.items():
        known = {field.encode_name for field in msgspec.structs.fields(struct)}
        read = set(re.findall(rf"(?<![.\w]){variable}\.(\w+)", page.inline["script"]))
        assert read, f"the script reads nothing of {variable}"
        assert read <= known, f"{struct.__name__} has no {sorted(read - known)}"
    assert set(array(page, "SUMMED")) <= {field.name for field in msgspec.structs.fields(Figures)}
    assert set(array(page, "FILTERS")) <= {field.name for field in msgspec.structs.fields(TurnFilter)}
    assert {field.name for field in msgspec.structs.fields(Stats)} == {"total", "groups"}


def array(page: Elements, name: str) -> list[str]:
    found = re.search(rf"const {name} = (\[[^\]]+\])", page.inline["script"])
    assert found is not None
    names: list[str] = json.loads(found[1])
    return names


def test_every_way_to_decide_and_to_end_has_words(page: Elements) -> None:
    script = page.inline["script"]
    for struct, field, table in ((Why, "source", "SOURCES"), (TurnRecord, "ended", "ENDINGS")):
        kind = next(f.type for f in msgspec.structs.fields(struct) if f.name == field)
        block = re.search(rf"const {table} = \{{(.*?)\}};", script, re.DOTALL)
        assert block is not None
        assert set(re.findall(r"(\w+):", block[1])) == set(kind.__args__)


def test_every_element_looked_up_is_there(page: Elements) -> None:
    ids = {value for _, name, value in page.attributes if name == "id"}
    assert set(re.findall(r'\$\("([\w-]+)"\)', page.inline["script"])) <= ids
    labels = {value for _, name, value in page.attributes if name == "aria-labelledby"}
    assert labels <= ids | set(re.findall(r'id: "([\w-]+)"', page.inline["script"]))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to parse the script")
def test_script_is_javascript(page: Elements, tmp_path: Path) -> None:
    file = tmp_path / "page.js"
    file.write_text(page.inline["script"])
    checked = subprocess.run(["node", "--check", str(file)], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(page: Elements, scheme: str) -> None:
    """Texts stand out from their grounds by 4.5, marks by 3 (WCAG AA)."""
    light, dark = re.findall(r":root \{(.*?)\}", page.inline["style"], re.DOTALL)
    named = dict(re.findall(r"--([\w-]+): (#\w+)", light))
    if scheme == "dark":
        named |= dict(re.findall(r"--([\w-]+): (#\w+)", dark))
    for ground in ("page", "card", "sunk"):
        for ink in ("ink", "soft", "link", "good", "bad", "warn"):
            assert contrast(named[ink], named[ground]) >= 4.5, (ink, ground)
    for ink, ground in (("bad", "bad-back"), ("warn", "warn-back"), ("ink", "warn-back"), ("ink", "bad-back")):
        assert contrast(named[ink], named[ground]) >= 4.5, (ink, ground)
    for mark in [f"c{n}" for n in range(8)] + ["strong-line"]:
        assert contrast(named[mark], named["card"]) >= 3, mark


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_served_to_all_under_a_strict_policy(gateway: Running, page: Elements) -> None:
    status, headers, body = fetch(gateway.url + "/dashboard")
    assert (status, body) == (200, FILE.read_bytes())
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert "'unsafe" not in headers["content-security-policy"]
    for element in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.inline[element].encode()).digest()).decode()
        assert policy[f"{element}-src"] == f"'sha256-{digest}'"
    assert headers["x-content-type-options"] == "nosniff"


def test_data_needs_the_key(gateway: Running) -> None:
    for path in ("/v1/stats", "/v1/turns", "/v1/turns/t0"):
        assert fetch(gateway.url + path)[0] == 401
        assert fetch(gateway.url + path, "wrong")[0] == 401
    assert fetch(gateway.url + "/v1/stats", "sesame")[0] == 200


def test_figures_and_their_rows(gateway: Running) -> None:
    """What a number of the dashboard counts is what its link lists."""
    priced = Call("small", "m", served=True, cost_usd=1.0)
    judged = Call("judge", "m", purpose="judge", cost_usd=0.5)
    free = msgspec.structs.replace(priced, cost_usd=None, cost_note="unpriced")
    untold = msgspec.structs.replace(free, target="large", cost_note="unknown")
    seen = Signals(depth=3)
    made = [
        TurnRecord("t1", 1.0, "coder", session=HOSTILE, target="small", cost_usd=1.0, calls=(priced,)),
        TurnRecord("t2", 2.0, "coder", session="s", target="small", cost_note="unpriced", calls=(free,)),
        TurnRecord("t3", 3.0, "coder", session="s", target="small", cost_usd=1.5, calls=(judged, priced), signals=seen),
        TurnRecord("t4", 4.0, "other", session="s", target="large", cost_note="unknown", ended="cut", calls=(untold,)),
    ]
    for record in made:
        gateway.gateway.ledger.append(record)

    def ids(query: str) -> list[str]:
        return [turn["id"] for turn in decoded(f"/v1/turns?{query}")["turns"]]

    def decoded(path: str) -> Any:
        status, _, body = fetch(gateway.url + path, "sesame")
        assert status == 200, body
        return json.loads(body)

    total = decoded("/v1/stats?by=ended")["total"]
    assert (total["unpriced"], total["unknown"], total["aside_usd"]) == (1, 1, 0.5)
    assert ids("cost_gap=unpriced") == ["t2"]
    assert ids("cost_gap=unknown") == ["t4"]
    assert ids("aside=true") == ["t3"]
    assert ids("ended=cut&route=other") == ["t4"]
    assert decoded("/v1/stats?by=target&route=coder")["groups"][0]["figures"]["turns"] == 3
    sessions = decoded("/v1/stats?by=session&top=1")
    assert [group["key"] for group in sessions["groups"]] == [{"session": "s"}]
    assert sessions["total"]["turns"] == 4
    assert "signals" in decoded("/v1/turns/t3")
    assert all("signals" not in turn for turn in decoded("/v1/turns?brief=true")["turns"])
    assert decoded("/v1/turns/t1")["session"] == HOSTILE


@pytest.mark.parametrize(
    "query", ["by=password", "top=0", "top=x", "hours=soon", "hours=nan", "nonsense=1", "cost_gap=1&since=x"]
)
def test_bad_questions_are_explained(gateway: Running, query: str) -> None:
    status, _, body = fetch(f"{gateway.url}/v1/stats?{query}", "sesame")
    assert status == 400
    assert json.loads(body)["error"]["message"]
