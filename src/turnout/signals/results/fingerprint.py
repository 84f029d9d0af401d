"""Fingerprints of failures: the telling line with every volatile token replaced, so that the same failure looks the same."""

import hashlib
import re

_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    # `a.c:14:22:` is a place, not a time.
    (re.compile(r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[\\/])*[\w@~+-]*\.[A-Za-z]\w{0,9}(?::\d+)+(?=[:\s,)]|$)"), "<path>"),
    (re.compile(r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[\\/])+[\w.@~+-]+(?::\d+)*"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{16,}\b"), "<id>"),
    (re.compile(r"\d+(?:\.\d+)?"), "#"),
    (re.compile(r"\s+"), " "),
)

_SECRET = re.compile(
    r"\b(?:sk|pk|rk|xox[abprs]|gh[pousr]|github_pat|glpat|hf|nvapi|AKIA|ASIA|AIza)[-_]?[A-Za-z0-9_-]{8,}"
    r"|\b(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}"
    r"|(?i:[\w-]{0,30}(?:api[_-]?key|token|secret|passw(?:or)?d|authorization)[\w-]{0,30}[\"']?\s*[:=]\s*)[\"']?(?:(?:Bearer|Basic|Token)\s+)?[^\s\"',;]{4,}"
    r"|(?<=://)[^/\s:@]{1,100}:[^/\s@]{1,200}(?=@)"
)


def normalised(line: str) -> str:
    """`line` with paths, numbers, hex, ids and times replaced."""
    line = line[:400]
    for pattern, token in _VOLATILE:
        line = pattern.sub(token, line)
    return line.strip()[:240]


def fingerprint(kind: str, line: str) -> str:
    """A short name for the failure `kind` told by `line`; never holds any of the text."""
    return f"{kind}:{hashlib.blake2b(normalised(line).encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def without_secrets(text: str) -> str:
    """The first 20,000 characters of `text`, anything that looks like a secret taken out."""
    return _SECRET.sub("[secret]", text[:20_000])


def shown(line: str) -> str:
    """`line` as evidence: one line of at most 200 characters, anything that looks like a secret taken out."""
    return _SECRET.sub("[secret]", line[:400]).strip()[:200]
