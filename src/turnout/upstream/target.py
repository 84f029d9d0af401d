"""Upstreams and targets: where models live and how they are asked. The structs are the TOML schema."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from turnout.conversation import Format

Tokens: TypeAlias = Annotated[int, Meta(ge=1)]
Capability: TypeAlias = Literal["tools", "images", "documents", "audio", "reasoning", "structured_output"]


class Upstream(Struct, frozen=True, forbid_unknown_fields=True):
    """A server that speaks one format.

    `format`: the wire format it speaks. `base_url`: with or without `/v1`. `api_key_env`: environment variable that holds the
    key; a file never holds a secret. `forward_auth`: pass on the client's own credentials instead (only to the vendor they
    belong to). `auth`: how the key is sent; `auto` is what the format's own vendor wants. `headers`: extra request headers,
    none that carries credentials. `body`: fields put into every request (shallow; the caller's own win). `script`: instead of
    a server, a file of replies to play (see upstream.scripted). `max_retries`: extra attempts for what may be retried.
    `betas`: the
    `anthropic-beta` flags it knows, the others are left out (default: all pass). `connect_s`: longest wait for a connection,
    seconds. `first_byte_s`: longest wait for the response head, seconds.
    `idle_s`: longest silence between bytes of a body, seconds. `max_connections`: connections open at once.
    `keeps_responses`: an `openai_responses` server keeps what it answered, so that a `previous_response_id` or an item's id
    means something to it; `false`: it is sent what they stand for. `judge_connections`: connections open at once for judges,
    which never use those of the answers.
    """

    format: Format
    base_url: str = ""
    api_key_env: str = ""
    forward_auth: bool = False
    auth: Literal["auto", "bearer", "x-api-key"] = "auto"
    headers: dict[str, str] = {}
    body: dict[str, object] = {}
    script: str = ""
    max_retries: int = 2
    connect_s: float = 10.0
    first_byte_s: float = 300.0
    idle_s: float = 120.0
    max_connections: int = 1024
    keeps_responses: bool = True
    betas: tuple[str, ...] | None = None
    judge_connections: int = 16


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """USD per million tokens, instead of the price snapshot. A missing cache rate means: unpriced when such tokens occur.

    `input`: prompt tokens that no cache served. `output`: tokens of the answer, reasoning included. `cache_read`: prompt tokens
    read from the cache. `cache_write`: prompt tokens written to the cache. `cache_write_1h`: the same, kept for an hour.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """A model on an upstream.

    `upstream`: where it is served. `model`: the id its server knows it by. `price`: its own price, instead of the snapshot's.
    `price_id`: the id to look up in the price snapshot when `model` is a private name. `extra_body`: fields put into every
    request (shallow; the caller's own win). `context_window`: tokens. `max_tokens`: output limit stated where a format demands
    one and the client gave none. `prompt`: instruction put before the client's. `effort`: reasoning effort asked for instead
    of the client's. `capabilities`: what it can do (`tools`, `images`, `documents`, `audio`, `reasoning`,
    `structured_output`); undeclared = everything. `reasoning_content`: the server wants earlier reasoning back in
    `reasoning_content`. `developer_role`: the role of developer messages where its Chat template knows only `system`.
    `thinking`: how a Messages model takes thinking (`adaptive`, `budget`, or `none`; default: as the client says).
    `cache_ttl`: `5m` shortens 1-hour cache marks for an upstream that refuses them. `cache_marks`: whether a Messages model is
    told what to cache in conversations that came in a format without cache marks.
    """

    upstream: str
    model: str
    price: Price | None = None
    price_id: str = ""
    extra_body: dict[str, object] = {}
    context_window: Tokens | None = None
    max_tokens: Tokens | None = None
    prompt: str = ""
    effort: str = ""
    capabilities: tuple[Capability, ...] | None = None
    reasoning_content: bool = False
    developer_role: Literal["developer", "system"] = "developer"
    thinking: Literal["adaptive", "budget", "none"] | None = None
    cache_ttl: Literal["5m"] | None = None
    cache_marks: bool = True
