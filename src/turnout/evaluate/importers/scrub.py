"""Secrets and home paths taken out of what is imported."""

import re
from typing import Any

import msgspec

from turnout.upstream.credentials import Redactor

_HOME = re.compile(
    r"(?<![\w.-])(/(?:home|Users)/|[A-Za-z]:\\{1,4}Users\\{1,4}|/mnt/[a-z]/Users/)(?!Shared\b|Public\b)[^/\\\s\"'<>|:;,)]+"
)
_FLAT = re.compile(r"(?<![A-Za-z0-9])(-(?:home|Users)-)[A-Za-z0-9_.]+(?=-)")
"""A home path as Claude Code names a project's folder."""
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    re.compile(r"\bAIza[0-9A-Za-z_\-]{30,}"),
    re.compile(r"\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_\-]{16,}"),
    re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\b(?:sk|pk|rk)(?:-[a-z0-9]+)*[-_][A-Za-z0-9_\-]{16,}"),
    re.compile(r"\b(?:hf|npm|pypi|nvapi|gsk|xai)[-_][A-Za-z0-9_\-]{16,}"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@\"']{1,64}:[^/\s@\"']{3,}(?=@)"),
)
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?token|auth[_-]?token|password|passwd)\\?[\"']?\s*[:=]\s*\\?[\"']?)"
    r"(?!\[redacted\])[^\s\"'\\,;&}{()$<>\[\]]{6,}"
)
_redactor = Redactor(())


def scrub(text: str) -> str:
    """`text` without what looks like a secret, and with the names of home folders replaced by `user`."""
    text = _redactor.clean(text)
    for pattern in _SECRETS:
        text = pattern.sub("[redacted]", text)
    text = _NAMED.sub(r"\1[redacted]", text)
    return _FLAT.sub(r"\1user", _HOME.sub(r"\1user", text))


def scrubbed(value: Any) -> Any:
    """A JSON value with every text in it scrubbed, keys too. JSON inside a text is scrubbed as text."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(key) if isinstance(key, str) else key: scrubbed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(one) for one in value]
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value,
            **{
                name: scrubbed(one)
                for name, one in msgspec.structs.asdict(value).items()
                if isinstance(one, str | dict)
            },
        )
    return value
