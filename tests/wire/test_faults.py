# ruff: noqa: E501 - the spellings are kept on one line each, as providers send them
"""What providers' error bodies mean: real spellings, one a row."""

from datetime import UTC, datetime

import msgspec
import pytest

from tests.recorded import captures, needs_recordings
from turnout.wire.faults import TEXT_LIMIT, classify, error_text, parse_retry_after, stated, upstream_error

OVERFLOW = [
    (400, "context_length_exceeded", "invalid_request_error", "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens."),
    (400, None, "invalid_request_error", "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 0 for the completion). Please reduce your prompt; or completion length."),
    (None, "context_length_exceeded", "invalid_request_error", "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, None, None, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (400, None, None, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 274399 tokens. Please reduce the length of the messages."),
    (400, "string_above_max_length", "invalid_request_error", "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a string with length 11140000 instead."),
    (400, "string_above_max_length", "invalid_request_error", "Invalid 'input[0].content[0].text': string too long. Expected a string with maximum length 10485760, but got a string with length 11140000 instead."),
    (400, None, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
    (400, None, "invalid_request_error", "Prompt is too long"),
    (400, None, "invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"),
    (413, None, "request_too_large", "Request exceeds the maximum size"),
    (413, None, None, "<html><title>413 Request Entity Too Large</title></html>"),
    (413, None, None, ""),
    # vLLM
    (400, 400, "BadRequestError", "This model's maximum context length is 4096 tokens. However, your request has 5001 input tokens. Please reduce the length of the input messages. None"),
    (400, None, "BadRequestError", "This model's maximum context length is 32768 tokens. However, you requested 40010 tokens (8010 in the messages, 32000 in the completion). Please reduce the length of the messages or completion."),
    (400, None, "BadRequestError", "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1000 input tokens (32000 > 32768 - 1000). None"),
    (400, None, "BadRequestError", "The decoder prompt (length 40119) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens."),
    (400, None, None, "Input prompt (16436 tokens) is too long and exceeds limit of 16384"),
    (400, None, None, "You passed 4097 input tokens and requested 100 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3996 tokens."),
    (400, None, "BadRequestError", "max_tokens must be at least 1, got -1234."),
    # NIM, TensorRT-LLM
    (500, None, None, "Prompt length (9120) exceeds maximum input length (8192). Set log level to info and check TRTLLM logs for details"),
    (400, None, None, "The sum of prompt length (9000.0), query length (0) should not exceed max_num_tokens (8192)"),
    (400, None, None, "default_max_tokens (-113) must be greater than 0, `default_max_tokens (-113) = max_seq_len (8192) - prompt_len (8305)`"),
    # Ollama
    (400, None, None, "prompt too long; exceeded max context length by 1312 tokens"),
    (500, None, "api_error", "the input length exceeds the context length"),
    (400, None, None, "input length exceeds maximum context length"),
    # llama.cpp, llama-cpp-python
    (400, 400, "exceed_context_size_error", "request (11014 tokens) exceeds the available context size (8192 tokens), try increasing it"),
    (500, 500, "server_error", "the request exceeds the available context size. try increasing the context size or enable context shift"),
    (500, None, "server_error", "Context size has been exceeded."),
    (500, None, "server_error", "input is too large to process. increase the physical batch size"),
    (400, None, None, "Requested tokens (5123) exceed context window of 4096"),
    # SGLang
    (400, 400, "BadRequestError", "The input (5021 tokens) is longer than the model's context length (4096 tokens)."),
    (400, 400, "BadRequestError", "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5021 tokens: 4021 tokens from the input messages and 1000 tokens for the completion."),
    (400, None, None, "Input length (5021 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or enable --allow-auto-truncate."),
    # OpenRouter
    (400, 400, None, "This endpoint's maximum context length is 1048576 tokens. However, you requested about 1293741 tokens (1227853 of text input, 353 of tool input, 65535 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically."),
    # Bedrock
    (400, None, "ValidationException", "Input is too long for requested model."),
    (400, None, "ValidationException", "The model returned the following errors: Input is too long for requested model."),
    (400, None, "ValidationException", "Too many input tokens. Max input tokens: 8192, request input token count: 9100 "),
    (400, None, "ValidationException", "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."),
    # Gemini
    (400, 400, "INVALID_ARGUMENT", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."),
    (400, 400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed 1048576."),
    # Groq, Cerebras, Mistral, DeepSeek, xAI, Moonshot, MiniMax, GLM, Qwen, Fireworks, Cohere
    (400, "context_length_exceeded", "invalid_request_error", "Please reduce the length of the messages or completion."),
    (400, None, None, "Please reduce the length of the messages or completion. Current length is 131313 while limit is 131072"),
    (400, 3051, "invalid_request_error", "Prompt contains 66299 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    (400, "invalid_request_error", "invalid_request_error", "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion."),
    (400, None, None, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (400, None, "invalid_request_error", "Invalid request: Your request exceeded model token limit: 131072 (requested: 150231)"),
    (400, None, "bad_request_error", "invalid params, context window exceeds limit (2013)"),
    (400, "1261", None, "Prompt exceeds max length"),
    (400, "invalid_parameter_error", "invalid_request_error", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]"),
    (400, None, "invalid_request_error", "The prompt is too long: 8800, model maximum context length: 8191"),
    (400, None, None, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292."),
    # TGI, LM Studio, GitHub, Cloudflare, LiteLLM, Azure
    (422, None, "validation", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`"),
    (422, None, "validation", "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500"),
    (400, None, None, "Trying to keep the first 5297 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"),
    (400, None, None, "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input."),
    (400, None, None, "Reached context length of 4096 tokens with this model, but this model architecture does not currently support mid-generation context overflow."),
    (400, "model_max_prompt_tokens_exceeded", None, "prompt token count of 130012 exceeds the limit of 128000"),
    (413, "tokens_limit_reached", None, "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    (400, 5021, None, "The estimated number of input and maximum output tokens (30012) exceeded this model context window limit (24000)."),
    (400, "400", None, "litellm.ContextWindowExceededError: litellm.BadRequestError: AzureException ContextWindowExceededError - This model's maximum context length is 16385 tokens."),
    (400, "context_length_exceeded", None, "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens (139000 in the messages, 1000 in the functions)."),
]  # fmt: skip

REQUEST = [
    # The limit on the answer is not the window.
    (400, None, "invalid_request_error", "max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620"),
    (400, "invalid_value", "invalid_request_error", "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."),
    (400, "unsupported_parameter", "invalid_request_error", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
    (400, None, "invalid_request_error", "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model"),
    (400, None, "invalid_request_error", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
    (400, 400, "INVALID_ARGUMENT", "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive)."),
    (400, None, "ValidationException", "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."),
    (400, None, "invalid_request_error", "`max_tokens` must be greater than `thinking.budget_tokens`."),
    (400, None, "BadRequestError", "max_tokens must be at least 1, got 0."),
    (422, None, "validation", "Input validation error: `max_new_tokens` must be <= 512. Given: 600"),
    # Other things that are too long, too many, too large.
    (400, "string_above_max_length", "invalid_request_error", "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 53 instead."),
    (400, "string_above_max_length", "invalid_request_error", "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1100 instead."),
    (400, "array_above_max_length", "invalid_request_error", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead."),
    (400, None, "invalid_request_error", "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
    (400, None, "invalid_request_error", "messages.4.content.0: A maximum of 100 PDF pages may be provided."),
    (400, "unknown_parameter", "invalid_request_error", "Unknown parameter: 'context_length'."),
    (400, None, "invalid_request_error", "rate_limit_scope: Extra inputs are not permitted"),
    (400, None, "invalid_request_error", "messages.8: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01JJ"),
    (404, "model_not_found", "invalid_request_error", "The model `gpt-9` does not exist or you do not have access to it."),
    (404, None, "not_found_error", "model: claude-sonet-4-5"),
    (400, "invalid_image_url", "invalid_request_error", "Timeout while downloading https://example.com/cat.png."),
    (None, None, "invalid_request_error", "tools.0.name: must match pattern"),
    (405, None, None, "Method Not Allowed"),
    (409, None, None, "Conflict"),
]  # fmt: skip

REFUSED = [
    (400, "content_filter", None, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry."),
    (400, None, None, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."),
    (400, "content_policy_violation", "invalid_request_error", "Your request was rejected as a result of our safety system."),
    (400, "invalid_prompt", "invalid_request_error", "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt."),
    (400, None, "invalid_request_error", "Output blocked by content filtering policy"),
    (None, None, "api_error", "Output blocked by content filtering policy"),
    (403, 403, None, "openai/gpt-4o requires moderation on OpenAI. Your input was flagged for \"harassment\". No credits were charged."),
    (400, "invalid_request_error", "invalid_request_error", "Content Exists Risk"),
    (400, "data_inspection_failed", None, "Input data may contain inappropriate content."),
    (400, None, "content_filter", "The request was rejected because it was considered high risk"),
    (400, None, "INVALID_ARGUMENT", "The prompt was blocked due to PROHIBITED_CONTENT"),
]  # fmt: skip

RATE = [
    (429, None, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    (429, None, "rate_limit_error", "Extra usage is required for long context requests."),
    (429, "rate_limit_exceeded", "tokens", "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 42000. The input or output tokens must be reduced in order to run successfully."),
    (413, "rate_limit_exceeded", "tokens", "Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7123, please reduce your message size and try again."),
    (413, None, None, "Request too large for model `llama-3.1-8b-instant` on tokens per minute (TPM): Limit 6000, Requested 7123"),
    (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."),
    (400, None, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
    (402, 402, None, "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1234."),
    (402, None, None, "Insufficient Balance"),
    (429, None, "ThrottlingException", "Too many tokens, please wait before trying again."),
    (None, 429, None, "Provider returned error"),
    (None, "rate_limit_exceeded", None, "Rate limit reached for gpt-5 on tokens per min (TPM)"),
    (429, 429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    (429, None, "engine_overloaded_error", "The engine is currently overloaded, please try again later"),
    (429, None, None, ""),
    (500, None, None, "litellm.RateLimitError: RateLimitError: OpenAIException - too many requests"),
]  # fmt: skip

UNAVAILABLE = [
    (529, None, "overloaded_error", "Overloaded"),
    (None, None, "overloaded_error", "Overloaded"),
    (None, None, "api_error", "Internal server error"),
    (500, None, "server_error", "The server had an error while processing your request. Sorry about that!"),
    (503, None, None, "The model is overloaded. Please try again later."),
    (503, "slow_down", None, "Slow Down"),
    (502, None, None, "<html><body>Bad Gateway</body></html>"),
    (520, None, None, ""),
    (498, None, None, "Flex tier capacity exceeded"),
    (None, "server_error", None, "An error occurred while processing your request."),
    (None, None, None, ""),
]

AUTH = [
    (401, None, "authentication_error", "invalid x-api-key"),
    (
        401,
        "invalid_api_key",
        "invalid_request_error",
        "Incorrect API key provided: sk-***. You can find your API key at ...",
    ),
    (403, None, "permission_error", "Your API key does not have permission to use the specified resource."),
    (403, None, None, "Forbidden"),
    (400, 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    (401, None, None, "Unauthorized"),
    (None, None, "authentication_error", "OAuth token has expired."),
    (401, 401, None, "No auth credentials found"),
]

TIMEOUT = [
    (504, None, "timeout_error", "Request timed out"),
    (408, None, None, ""),
    (524, None, None, "A timeout occurred"),
    (500, None, None, "Upstream request timed out"),
    (None, None, "timeout_error", "the model took too long"),
    (500, 504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
]


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        (kind, row)
        for kind, rows in (
            ("overflow", OVERFLOW),
            ("request", REQUEST),
            ("refused", REFUSED),
            ("rate_limit", RATE),
            ("unavailable", UNAVAILABLE),
            ("auth", AUTH),
            ("timeout", TIMEOUT),
        )
        for row in rows
    ],
    ids=lambda x: x if isinstance(x, str) else str(x[-1])[:60],
)
def test_every_known_spelling_is_classified(kind, row):
    assert classify(*row) == kind


@pytest.mark.parametrize("row", [row for row in OVERFLOW if row[0] != 413 or row[1]], ids=lambda row: str(row[-1])[:60])
def test_an_overflow_is_recognised_inside_a_stream_too(row):
    _, code, type_, message = row
    assert classify(None, code, type_, message) == "overflow"
    assert classify(200, code, type_, message) == "overflow"


def test_echoed_input_far_down_the_message_does_not_decide():
    assert classify(400, None, None, "tools.0: invalid " + "x" * 5000 + " prompt is too long") == "request"


def test_a_redirect_is_not_an_answer():
    assert classify(302, None, None, "") == "malformed"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}, ("m", "t", "c", "p")),
        ({"type": "error", "error": {"type": "not_found_error", "message": "m"}}, ("m", "not_found_error", None, None)),
        ({"error": "plain"}, ("plain", None, None, None)),
        ({"error": "plain", "code": "c"}, ("plain", None, "c", None)),
        ({"detail": "plain"}, ("plain", None, None, None)),
        (
            {"detail": [{"loc": ["body", "messages", 0], "msg": "field required", "type": "value_error"}]},
            ("body.messages.0: field required", None, None, "body.messages.0"),
        ),
        (
            {"message": "m", "type": "BadRequestError", "code": 400, "object": "error"},
            ("m", "BadRequestError", 400, None),
        ),
        (
            [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}],
            ("m", "INVALID_ARGUMENT", 400, None),
        ),
        ({"errors": [{"message": "a"}, {"message": "b"}], "success": False}, ("a; b", None, None, None)),
        (
            {
                "error": {
                    "code": 400,
                    "message": '{"type":"error","error":{"type":"invalid_request_error","message":"m"}}',
                }
            },
            ("m", "invalid_request_error", 400, None),
        ),
        (
            {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "slow down please"}}},
            ("Provider returned error: slow down please", None, 429, None),
        ),
        (
            {
                "type": "response.failed",
                "response": {"error": {"code": "server_error", "message": "m"}, "status": "failed"},
            },
            ("m", "response.failed", "server_error", None),
        ),
        (
            {"type": "error", "code": "c", "message": "m", "param": None, "sequence_number": 3},
            ("m", "error", "c", None),
        ),
        ("text", ("text", None, None, None)),
        ({}, ("the upstream gave no message", None, None, None)),
        ([], ("the upstream gave no message", None, None, None)),
        (None, ("the upstream gave no message", None, None, None)),
        ({"error": {}}, ("the upstream gave no message", None, None, None)),
        ({"error": {"message": {"a": 1}}}, ('{"a":1}', None, None, None)),
    ],
    ids=str,
)
def test_error_bodies_are_read_however_they_are_wrapped(body, expected):
    assert tuple(stated(body))[:4] == expected
    encoded = stated(msgspec.json.encode(body))
    assert tuple(encoded)[:4] == expected
    assert encoded.value == body


def test_a_deeply_nested_error_ends():
    text = '{"error":{"message":"end"}}'
    for _ in range(12):
        text = msgspec.json.encode({"error": {"message": text}}).decode()
    assert stated(text).message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "an empty answer"),
        (b"  \r\n ", "an empty answer"),
        (b"upstream connect error", "upstream connect error"),
        (b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>", "502 Bad Gateway"),
        (b"<html><head><title>Nope</title><style>p{color:red}</style></head><body><p>Come\nback</p><script>x()</script></body>", "Nope Come back"),
        (b"a < b and c > d", "a < b and c > d"),
        (b"\xff\xfe\x00broken", "\ufffd\ufffd broken"),
        (b"<html><script>never closed", "an empty answer"),
    ],
    ids=repr,
)  # fmt: skip
def test_error_text_is_readable(body, expected):
    assert error_text(body) == expected


def test_error_text_is_cut():
    assert len(error_text(b"x" * 100_000)) == TEXT_LIMIT
    assert len(error_text(b"<html>" + b"<p>word</p>" * 10_000)) == TEXT_LIMIT


def test_an_answer_in_html_keeps_its_status_and_words():
    error = upstream_error(503, [(b"Retry-After", b"7")], b"<html><title>Down</title><body>for now</body></html>")
    assert (error.kind, error.status, error.retry_after_s, error.message) == ("unavailable", 503, 7.0, "Down for now")
    assert error.body is None


def test_an_error_inside_a_stream_takes_its_status_from_its_code():
    error = upstream_error(None, [], {"error": {"code": 502, "message": "Provider disconnected"}})
    assert (error.kind, error.status, error.code) == ("unavailable", 502, "502")


def test_the_filter_that_refused_is_found_beside_the_message():
    body = {
        "error": {
            "code": None,
            "message": "bad",
            "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter": 1},
        }
    }
    assert upstream_error(400, [], body).kind == "refused"


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360.0),
        ({"x-ratelimit-reset-tokens": "30ms", "x-ratelimit-remaining-tokens": "0"}, 0.03),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s", "x-ratelimit-remaining-tokens": "0"}, 3723.5),
        ({"x-ratelimit-reset-tokens": "7m", "x-ratelimit-remaining-tokens": "12"}, None),
        ({"x-ratelimit-reset-tokens": "7m"}, None),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "9s",
                "x-ratelimit-remaining-tokens": "0",
            },
            9.0,
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-reset": "2026-03-01T12:01:00Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-03-01T13:00:00Z",
                "anthropic-ratelimit-requests-remaining": "4",
            },
            60.0,
        ),
        ({"x-ratelimit-reset": str(int(NOW * 1000) + 5000), "x-ratelimit-remaining": "0"}, 5.0),
        ({"x-ratelimit-reset": str(int(NOW) + 5)}, 5.0),
        ({"ratelimit-reset": "12"}, 12.0),
        ({"x-ratelimit-reset": "12", "x-ratelimit-remaining": "3"}, None),
        ({"x-ratelimit-reset-after": "2.5"}, 2.5),
    ],
    ids=str,
)
def test_the_wait_asked_for_is_read_in_every_spelling(headers, expected):
    pairs = [(k.encode(), v.encode()) for k, v in headers.items()]
    assert parse_retry_after(pairs, NOW) == pytest.approx(expected)


RECORDED = {
    "pa-001": "request",
    "pa-002": "request",
    "pa-004": "request",
    "pa-005": "request",
    "pa-006": "request",
    "pa-033": "request",
    "pa-122": "request",
    "pa-134": "request",
    "pa-228": "request",
    "pa-229": "rate_limit",
    "ie-01": "unavailable",
    "ie-06": "overflow",
    "ie-07": "overflow",
    "ie-08": "request",
    "ie-09": "rate_limit",
    "ie-12": "request",
    "ie-15": "request",
    "ie-16": "overflow",
    "ie-18": "overflow",
}


@needs_recordings
def test_every_recorded_error_is_classified():
    errors = {row["id"]: row for row in captures() if (row["status"] or 200) >= 400}
    kinds = {name: upstream_error(row["status"], [], row["response"]).kind for name, row in errors.items()}
    assert kinds == RECORDED


@needs_recordings
def test_an_error_quoted_by_a_gateway_is_unwrapped():
    row = next(row for row in captures() if row["id"] == "ie-15")
    error = upstream_error(400, [], msgspec.json.encode(row["response"]))
    assert error.message.startswith("messages.243: `tool_use` ids were found")
    assert error.type == "invalid_request_error"
