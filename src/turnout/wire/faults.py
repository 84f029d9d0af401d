"""What an upstream's error means: one table of spellings, shared by all formats.

Providers say the same thing in many words: a prompt that does not fit is `context_length_exceeded` here, `Input is too long`
there, a plain 400 or 500 elsewhere. Errors are rare, so this file is written for reading, not for speed.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, NamedTuple

import msgspec

from turnout.errors import UpstreamError, UpstreamFault

TEXT_LIMIT = 500
"""Most characters kept of an error text that is not JSON."""

_LOOKED_AT = 4_000  # providers echo input after their own words: only the beginning is classified


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns))


# Codes and types are compared in lower case with everything but letters and digits taken out.
_CODES: dict[str, UpstreamFault] = {
    "contextlengthexceeded": "overflow",
    "contextwindowexceeded": "overflow",
    "contextwindowexceedederror": "overflow",
    "exceedcontextsizeerror": "overflow",
    "modelcontextwindowexceeded": "overflow",
    "modelmaxprompttokensexceeded": "overflow",
    "tokenslimitreached": "overflow",
    "prompttoolong": "overflow",
    "contentfilter": "refused",
    "contentfilterederror": "refused",
    "contentpolicyviolation": "refused",
    "contentpolicyviolationerror": "refused",
    "responsibleaipolicyviolation": "refused",
    "moderationblocked": "refused",
    "datainspectionfailed": "refused",
    "invalidprompt": "refused",
    "cyberpolicy": "refused",
    "cyberpolicyviolation": "refused",
    "ratelimiterror": "rate_limit",
    "ratelimitexceeded": "rate_limit",
    "ratelimitreached": "rate_limit",
    "toomanyrequests": "rate_limit",
    "insufficientquota": "rate_limit",
    "quotaexceeded": "rate_limit",
    "resourceexhausted": "rate_limit",
    "throttlingexception": "rate_limit",
    "throttling": "rate_limit",
    "billingerror": "rate_limit",
    "billinghardlimitreached": "rate_limit",
    "insufficientbalance": "rate_limit",
    "servicetiercapacityexceeded": "rate_limit",
    "usagelimitreached": "rate_limit",
    "slowdown": "unavailable",
    "invalidapikey": "auth",
    "apikeyinvalid": "auth",
    "authenticationerror": "auth",
    "permissionerror": "auth",
    "permissiondenied": "auth",
    "unauthenticated": "auth",
    "unauthorized": "auth",
    "accessdeniedexception": "auth",
    "unrecognizedclientexception": "auth",
    "timeouterror": "timeout",
    "requesttimeout": "timeout",
    "deadlineexceeded": "timeout",
    "overloadederror": "unavailable",
    "engineoverloadederror": "unavailable",
    "serverisoverloaded": "unavailable",
    "serveroverloaded": "unavailable",
    "serviceunavailable": "unavailable",
    "serviceunavailableexception": "unavailable",
}

# Types that say little: they count only where neither status nor words decide.
_WEAK: dict[str, UpstreamFault] = {
    "apierror": "unavailable",
    "servererror": "unavailable",
    "internalservererror": "unavailable",
    "internalerror": "unavailable",
    "unavailable": "unavailable",
    "vectorstoretimeout": "timeout",
    "invalidrequesterror": "request",
    "invalidrequest": "request",
    "invalidargument": "request",
    "badrequest": "request",
    "badrequesterror": "request",
    "notfounderror": "request",
    "notfound": "request",
    "modelnotfound": "request",
    "requesttoolarge": "overflow",
    "unsupportedvalue": "request",
    "unsupportedparameter": "request",
    "invalidvalue": "request",
}

# A limit on the answer alone, not on what went in: a larger window does not help, a smaller parameter does.
_OUTPUT_LIMIT = _any(
    r"maximum allowed number of output tokens",
    r"supports at most \d+ (?:completion|output) tokens",
    r"(?<!\+ `)max(?:imum)?_?(?:completion_|output_|new_)?tokens`? must be (?:less|<=|between)",
    r"valid range of max_(?:completion_)?tokens",
    r"max_?output_?tokens value of \d+",
    r"maximum tokens you requested exceeds the model limit",
    r"max_tokens must be greater than `?thinking",
    r"must be greater than `?thinking\.budget_tokens",
    r"(?:unsupported|unknown|unrecognized) (?:parameter|request argument)",
    r"extra inputs are not permitted",
)

_OVERFLOW = _any(
    r"prompt (?:is )?too (?:long|large)",
    r"(?:input|prompt) is too (?:long|big|large)",
    r"input (?:prompt )?\(\d+ tokens\) is (?:too long|longer than)",
    r"(?:maximum|max|model's) (?:prompt |input )?(?:context|prompt|input|model) ?(?:length|window|size) (?:is|of|was|limit)",
    r"(?:maximum|model's|longer than the model's) context (?:length|window|limit)",
    r"context[ _](?:length|window|size|limit)(?: has been| was| is| limit)? ?exceeded",
    r"exceed(?:s|ed|ing|ing of)?(?: the| this| your| its| maximum| max| available| model's| model| configured|)*"
    r" context[ _]?(?:length|window|size|limit)",
    r"exceeded this model context window",
    r"context window exceeds",
    r"context (?:length|window|size) of (?:only )?\d+",
    r"context length is only \d+",
    r"greater than the context (?:length|size|window)",
    r"longer than the (?:maximum )?(?:model|context) length",
    r"when context the overflows",
    r"context overflow",
    r"too large for model with",
    r"exceed(?:s|ed)? (?:the |your )?(?:model|configured) (?:token )?limit",
    r"exceeded model token limit",
    r"exceed(?:s)? context limit",
    r"input (?:token|tokens|length|count)[^.]{0,40}(?:exceed|longer|greater|over)(?:s|ed)?\b",
    r"number of input tokens exceed",
    r"prompt (?:token|tokens|length|exceeds)[^.]{0,60}(?:exceed|longer|max length|maximum)",
    r"prompt exceeds",
    r"input token count",
    r"(?:requested )?token count exceeds",
    r"requested tokens \(\d+\) exceed",
    r"prompt length[^.]{0,40}(?:should not exceed|exceeds)|should not exceed max_num_tokens",
    r"maximum prompt length is \d+",
    r"max(?:imum)? input length",
    r"range of input length should be",
    r"`?inputs`? (?:tokens \+ `?max_new_tokens`? must be <=|must have less than)",
    r"too many (?:input |prompt )?tokens",
    r"(?:reduce|shorten) the (?:length|size) of (?:the |your )?(?:input|prompt|messages)",
    r"reduce your prompt",
    r"tokens in request more than max tokens allowed",
    r"request body too large for .{0,60} model\. max size: \d+ tokens",
    r"max_tokens must be at least 1, got -\d",
    r"default_max_tokens \(-?\d+\) (?:must|should) be greater than 0",
    r"(?:payload|request|content|entity)[a-z ]{0,12} too large",
    r"request exceeds the maximum (?:allowed )?(?:size|number of (?:bytes|tokens))",
    r"invalid '(?:instructions|input|prompt|(?:messages|input)\[\d+\]\.(?:content|output)(?:\[\d+\]\.text)?)': string too long",
    r"kv size|n_ctx",
)

_RATE = _any(
    r"rate[ -]limit(?:s|ed)?\b(?! (?:must|parameter|field))",
    r"too many requests",
    r"(?:tokens|requests) per (?:min|minute|hour|day)\b|\((?:tpm|rpm|tpd|rpd)\)",
    r"quota (?:has been )?exceeded|exceeded (?:your|the) (?:\w+ )?quota|out of quota",
    r"resource (?:has been )?exhausted|resource_exhausted",
    r"throttl(?:ed|ing)|please wait before trying again",
    r"insufficient (?:credits?|balance|funds|quota)|credit balance is too low|requires more credits|out of credits",
    r"(?:usage|spend(?:ing)?|billing(?: hard)?) limit",
    r"extra usage is required",
)

_REFUSED = _any(
    r"content[ _](?:management|filter(?:ing)?|moderation|usage)[ _]polic",
    r"content[ _]polic(?:y|ies)",
    r"blocked by (?:our |the )?(?:content|safety|moderation)",
    r"content[ _]filter(?:ed|ing)?\b",
    r"(?:usage|safety) polic(?:y|ies)|violat(?:es|ing|e|ion of)[^.]{0,40}polic(?:y|ies)",
    r"(?:input|prompt|request|content) (?:was |has been |is )?flagged",
    r"flagged as potentially violating|limited access to this content for safety",
    r"prohibited_content|prohibited content|blocked due to (?:safety|prohibited)|blockreason",
    r"content exists risk|considered high risk|data_inspection_failed|inappropriate content",
    r"safety (?:system|filters?|guardrails?)[^.]{0,30}(?:reject|block)|rejected (?:by|as a result of) (?:our |the )?safety",
)

_AUTH = _any(
    r"(?:invalid|incorrect|missing|expired|wrong|no) (?:x-)?api[ -]?key",
    r"api key (?:not valid|not found|is invalid|expired|is missing|was not)",
    r"invalid (?:authentication|bearer|access|auth) ?(?:credentials|token|header)?\b",
    r"not authenticated|authentication (?:failed|required)|unauthorized\b|no auth credentials",
    r"oauth (?:token|authentication)[^.]{0,40}(?:expired|revoked|not supported|invalid)",
)

_TIMEOUT = _any(r"tim(?:ed|e) ?-?out", r"deadline exceeded")

_OVERLOADED = _any(
    r"\boverloaded\b",
    r"at capacity|capacity exceeded",
    r"temporarily unavailable|service unavailable",
    r"model is loading",
)

_TIMEOUT_STATUS = frozenset((408, 504, 522, 524))
_AUTH_STATUS = frozenset((401, 403, 407))
_RATE_STATUS = frozenset((402, 429))
_BUSY_STATUS = frozenset((425, 498, 499))


def classify(
    status: int | None, code: str | int | None = None, type: str | None = None, message: str = ""
) -> UpstreamFault:
    """What an upstream's error means, from its HTTP status, its code and type, and its words.

    `status`: None, or that of the stream, for an error inside a 200. Words beat the status where providers are known to use
    the wrong one (an overflow as 500, a rate limit as 413); a status of 429, 401 or 403 beats words about size.
    """
    if status is None or status < 300:
        status = _status_in(code)
    for name in (code, type):
        kind = _CODES.get(_squeezed(name))
        if kind is not None and not (status == 429 and kind == "unavailable"):
            return kind
    words = message[:_LOOKED_AT].lower()
    kind = _by_words(status, words)
    return kind if kind is not None else _by_status(status, code, type, words)


def _by_words(status: int | None, words: str) -> UpstreamFault | None:
    if status in _RATE_STATUS or _RATE.search(words):
        return "rate_limit"
    if _REFUSED.search(words):
        return "refused"
    if status in _AUTH_STATUS or _AUTH.search(words):
        return "auth"
    if status != 404 and _OVERFLOW.search(words) and not _OUTPUT_LIMIT.search(words):
        return "overflow"
    return None


def _by_status(status: int | None, code: str | int | None, type: str | None, words: str) -> UpstreamFault:
    if status == 413:
        return "overflow"
    if status in _TIMEOUT_STATUS:
        return "timeout"
    if status is not None and (400 <= status < 500 and status not in _BUSY_STATUS):
        return "request"
    if status is not None and status < 400:
        return "malformed"  # a redirect is not an answer
    if _TIMEOUT.search(words):
        return "timeout"
    if status is None and not _OVERLOADED.search(words):
        for name in (code, type):
            kind = _WEAK.get(_squeezed(name))
            if kind is not None:
                return kind
    return "unavailable"


def _squeezed(name: object) -> str:
    return "".join(c for c in name.lower() if c.isalnum()) if isinstance(name, str) else ""


class Stated(NamedTuple):
    """What an error body states, in the provider's words. `value`: the decoded body, None when it is not JSON."""

    message: str
    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    value: Any = None


def stated(body: bytes | str | Any) -> Stated:
    """What an error body (bytes, text, or decoded JSON) states, however it is wrapped.

    Knows `{"error": {...}}`, `{"error": "text"}`, `{"message": ...}`, `{"detail": ...}` with text or a list of field errors,
    `{"errors": [...]}`, lists of these, and a provider's error quoted as JSON text inside a gateway's.
    """
    if isinstance(body, bytes | str):
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Stated(error_text(body))
    else:
        value = body
    found = _dig(value, 0)
    return found._replace(message=found.message or "the upstream gave no message", value=value)


def _dig(value: Any, depth: int) -> Stated:
    if depth > 6:
        return Stated("")
    if isinstance(value, str):
        return _quoted(value, depth)
    if isinstance(value, list):
        return _listed(value, depth)
    if not isinstance(value, dict):
        return Stated("" if value is None else str(value))
    for key in ("error", "response", "detail", "errors"):
        inner = value.get(key)
        if inner and (isinstance(inner, dict | list) or (key in ("error", "detail") and isinstance(inner, str))):
            found = _dig(inner, depth + 1)
            if found.message or found.code or found.type:
                outer_type = value.get("type") if value.get("type") != "error" else None
                return found._replace(
                    message=found.message or _text(value.get("message")),
                    code=found.code if found.code is not None else _code(value.get("code")),
                    type=found.type or (outer_type if isinstance(outer_type, str) else None),
                )
    return _fields(value, depth)


def _fields(value: dict[str, Any], depth: int) -> Stated:
    message = next(
        (m for k in ("message", "msg", "error_msg", "error_message", "title") if (m := _text(value.get(k)))), ""
    )
    found = _quoted(message, depth)
    code = _code(value.get("code") if value.get("code") is not None else value.get("error_code"))
    type_ = value.get("type") if isinstance(value.get("type"), str) else value.get("status")
    # The outer code of a gateway is only its HTTP status: what the provider said inside it is worth more.
    if found.code is not None and not isinstance(found.code, int):
        code = found.code
    metadata = value.get("metadata")
    raw = (
        _quoted(metadata["raw"], depth) if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str) else None
    )
    if raw is not None and raw.message and raw.message not in found.message:
        joined = f"{found.message}: {raw.message}" if found.message else raw.message
        found = raw._replace(message=joined)
        if isinstance(raw.code, str):
            code = raw.code
    param = value.get("param")
    return Stated(
        found.message,
        found.type or (type_ if isinstance(type_, str) else None),
        code,
        param if isinstance(param, str) else found.param,
    )


def _listed(items: list[Any], depth: int) -> Stated:
    if items and isinstance(items[0], dict) and "loc" in items[0]:  # field errors of a validating web framework
        lines = [
            f"{'.'.join(str(x) for x in loc)}: {_text(item.get('msg'))}"
            for item in items
            if isinstance(item, dict) and isinstance(loc := item.get("loc"), list)
        ]
        return Stated("; ".join(lines)[:TEXT_LIMIT], None, None, lines[0].partition(":")[0] if lines else None)
    found = [_dig(item, depth + 1) for item in items[:8]]
    if not found:
        return Stated("")
    return found[0]._replace(message="; ".join(f.message for f in found if f.message))


def _quoted(message: str, depth: int) -> Stated:
    """A message, unwrapped where it is itself an error in JSON."""
    text = message.strip()
    if text.startswith(("{", "[")) and depth <= 6:
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return Stated(message)
        found = _dig(value, depth + 1)
        if found.message:
            return found
    return Stated(message)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()[:TEXT_LIMIT]


def _code(value: Any) -> str | int | None:
    return value if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None


_HIDDEN = re.compile(r"<(script|style|head)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z!][^>]*>?")
_HTML = re.compile(r"<(?:!doctype|html|head|body|title|h1|center|p)\b", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\s]+")


def error_text(body: bytes | str) -> str:
    """The readable words of an error body that is not JSON (HTML, plain text, nothing), at most 500 characters."""
    text = body[:65_536].decode("utf-8", "replace") if isinstance(body, bytes) else body[:65_536]
    if _HTML.search(text):
        title = _TITLE.search(text)
        seen = _TAG.sub(" ", _HIDDEN.sub(" ", text))
        if title is not None and title.group(1).strip() not in seen:
            seen = f"{title.group(1)} {seen}"
        text = seen
    text = _CONTROL.sub(" ", text).strip()
    if not text:
        return "an empty answer"
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


def upstream_error(
    status: int | None, headers: Iterable[tuple[bytes, bytes]], body: bytes | str | Any, *, target: str = ""
) -> UpstreamError:
    """The classified error of a non-2xx answer, or (`status` None, `headers` empty) of an error object inside a stream."""
    said = stated(body)
    code = said.code
    kind = classify(status, code, said.type, _everything(said))
    return UpstreamError(
        kind,
        said.message,
        status=status if status is not None and status >= 400 else _status_in(code),
        code=None if code is None else str(code),
        type=said.type,
        param=said.param,
        retry_after_s=parse_retry_after(headers),
        body=said.value,
        target=target,
    )


def _everything(said: Stated) -> str:
    # Azure names the refusing filter only in `innererror`, beside the message.
    value = said.value
    error = value.get("error") if isinstance(value, dict) else None
    inner = error.get("innererror") if isinstance(error, dict) else None
    return f"{said.message} {_text(inner)}" if inner else said.message


def _status_in(code: str | int | None) -> int | None:
    number = int(code) if isinstance(code, int) or (code is not None and code.isdecimal()) else 0
    return number if 400 <= number < 600 else None


_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_FAMILIES = ("requests", "tokens", "input-tokens", "output-tokens")


def parse_retry_after(headers: Iterable[tuple[bytes, bytes]], now: float | None = None) -> float | None:
    """Seconds to wait before the next try, as the headers of an error say; None when they do not.

    Reads `retry-after-ms`, `retry-after` (seconds or an HTTP date), then the reset time of whichever limit is used up
    (`x-ratelimit-reset-*`, `anthropic-ratelimit-*-reset`, `x-ratelimit-reset`: a duration, seconds, or a time of day).
    `now`: Unix seconds, the clock when not given.
    """
    found = {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in headers}
    clock = time() if now is None else now
    milliseconds = _number(found.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    if "retry-after" in found:
        wait = _wait(found["retry-after"], clock)
        if wait is not None:
            return wait
    waits = []
    for family in _FAMILIES:
        for reset, remaining in (
            (f"x-ratelimit-reset-{family}", f"x-ratelimit-remaining-{family}"),
            (f"anthropic-ratelimit-{family}-reset", f"anthropic-ratelimit-{family}-remaining"),
        ):
            if reset in found and _number(found.get(remaining)) == 0:
                waits.append(_wait(found[reset], clock))
    for prefix in ("x-ratelimit-", "ratelimit-"):
        left = _number(found.get(f"{prefix}remaining"))
        for name in ("reset-after", "reset"):
            if f"{prefix}{name}" in found and (left is None or left == 0):
                waits.append(_wait(found[f"{prefix}{name}"], clock))
    return max((w for w in waits if w is not None), default=None)


def _wait(value: str, now: float) -> float | None:
    seconds = _number(value)
    if seconds is not None:
        if seconds > 1e12:  # Unix milliseconds
            return max(0.0, seconds / 1000 - now)
        return max(0.0, seconds - now) if seconds > 1e9 else seconds
    duration = _DURATION.fullmatch(value)
    if value and duration is not None:
        days, hours, minutes, secs, millis = (float(g or 0) for g in duration.groups())
        return days * 86_400 + hours * 3_600 + minutes * 60 + secs + millis / 1000
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            when = parse(value)
        except (ValueError, TypeError, IndexError):
            continue
        if when.tzinfo is not None:
            return max(0.0, when.timestamp() - now)
    return None


def _number(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"\d{1,18}(?:\.\d*)?|\.\d+", value):
        return None
    return float(value)
