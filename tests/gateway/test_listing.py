"""The model lists: each client's shape, and cards that Codex accepts."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from tests.running import Running, running

from turnout.gateway import config as configuration
from turnout.gateway.cards import INSTRUCTIONS, cards

CONFIG = """
[upstreams.up]
format = "openai_chat"
base_url = "http://127.0.0.1:9/v1"
[targets.small]
upstream = "up"
model = "vendor-small"
context_window = 128000
capabilities = ["tools"]
[targets.large]
upstream = "up"
model = "vendor-large"
context_window = 200000
[targets.unsized]
upstream = "up"
model = "vendor-other"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
aliases = ["claude-coder", "gpt-5.5-coder", "claude-*"]
description = "Everyday work"
[routes.big]
type = "passthrough"
target = "large"
[routes.other]
type = "stage"
efficient = "unsized"
capable = "large"
"""
# What Codex 0.171 wants in a card, apart from its instructions (null where it takes null).
REQUIRED = {
    "slug": str, "display_name": str, "description": str, "supported_reasoning_levels": list, "shell_type": str,
    "visibility": str, "supported_in_api": bool, "priority": int, "base_instructions": str,
    "supports_reasoning_summaries": bool, "support_verbosity": bool, "apply_patch_tool_type": str,
    "truncation_policy": dict, "supports_parallel_tool_calls": bool, "experimental_supported_tools": list,
    "input_modalities": list,
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(CONFIG, tmp_path_factory.mktemp("listing")) as served:
        yield served


def fetch(url: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    request = urllib.request.Request(url, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, {k.lower(): v for k, v in reply.headers.items()}, json.loads(reply.read())
    except HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, None


def by_slug() -> dict[str, dict[str, Any]]:
    config = configuration.parse(CONFIG)
    return {card["slug"]: card for card in cards(config, [n for n in config.by_model() if "*" not in n])}


def test_codex_gets_a_card_per_name_it_does_not_know_itself(gateway: Running) -> None:
    _, _, body = fetch(gateway.url + "/v1/models?client_version=0.171.0")
    assert [card["slug"] for card in body["models"]] == ["coder", "claude-coder", "big", "other"]
    assert [card["priority"] for card in body["models"]] == [1, 2, 3, 4]
    for card in body["models"]:
        for field, kind in REQUIRED.items():
            assert isinstance(card[field], kind), field
        assert all(set(level) == {"effort", "description"} for level in card["supported_reasoning_levels"])
    assert {model["id"] for model in body["data"]} >= {"gpt-5.5-coder", "coder"}


def test_a_card_promises_what_every_target_can_do() -> None:
    found = by_slug()
    assert found["coder"]["context_window"] == 128_000
    assert found["coder"]["input_modalities"] == ["text"]
    assert found["coder"]["supported_reasoning_levels"] == []
    assert found["coder"]["description"] == "Everyday work"
    assert found["big"]["context_window"] == 200_000
    assert found["big"]["input_modalities"] == ["text", "image"]
    assert [level["effort"] for level in found["big"]["supported_reasoning_levels"]] == ["low", "medium", "high"]
    assert "context_window" not in found["other"]


def test_instructions_explain_the_patch_tool() -> None:
    assert all(word in INSTRUCTIONS for word in ("apply_patch", "*** Begin Patch", "*** End Patch", "AGENTS.md"))


def test_others_get_no_cards(gateway: Running) -> None:
    _, _, body = fetch(gateway.url + "/v1/models")
    assert body["object"] == "list"
    assert body["models"] == []
    assert {model["object"] for model in body["data"]} == {"model"}


def test_an_unchanged_list_is_not_sent_again(gateway: Running) -> None:
    url = gateway.url + "/v1/models?client_version=0.171.0"
    _, headers, _ = fetch(url)
    assert headers["etag"] == headers["x-models-etag"]
    status, again, _ = fetch(url, if_none_match=headers["etag"])
    assert (status, again["etag"]) == (304, headers["etag"])
    assert fetch(url, if_none_match='"another"')[0] == 200


def test_claude_code_finds_names_it_keeps(gateway: Running) -> None:
    """Claude Code keeps names that begin with claude or anthropic and drops the others; patterns are no names."""
    _, _, body = fetch(gateway.url + "/v1/models?limit=1000", anthropic_version="2023-06-01")
    assert body["has_more"] is False
    assert [model["id"] for model in body["data"] if model["id"].startswith("claude")] == ["claude-coder"]
    assert all({"type", "id", "display_name", "created_at"} == set(model) for model in body["data"])


def test_anthropic_pages(gateway: Running) -> None:
    names: list[str] = []
    after = ""
    for _ in range(9):
        _, _, body = fetch(f"{gateway.url}/v1/models?limit=2{after}", anthropic_version="2023-06-01")
        names += [model["id"] for model in body["data"]]
        if not body["has_more"]:
            break
        after = f"&after_id={body['last_id']}"
    assert names == ["coder", "claude-coder", "gpt-5.5-coder", "big", "other"]
    assert fetch(f"{gateway.url}/v1/models?limit=0", anthropic_version="2023-06-01")[0] == 400
