"""What scripts that an agent wrote itself say of their own outcome, where no test runner says it."""

import re

_QUESTION = (
    r"(?:match(?:es)?|correct|equal|same|identical|success(?:ful)?|passed|valid|ok|works|as expected)[^\w\n]{0,4}: ?"
)
_BAD = re.compile(
    r"^[^\w\n]{0,8}(?:FAIL(?:ED|URE|URES)?|ERROR)\b(?! ?\(?expected|.{0,80}\bas expected)"
    r"|^[^\w\n]{0,4}[\u2717\u2718\u274c]"
    r"|(?::|->|=>|\u2192)[ \t]*(?:FAIL(?:ED|URE)?|MISMATCH)[ \t]*[.!]?$"
    rf"|\b(?i:{_QUESTION})False[ \t]*[.!]?$"
    r"|^[^\w\n]{0,8}(?:Some |\d+ )?(?:[Tt]ests?|checks?) (?:failed|FAILED)\b"
    r"|\b(?:BUG|ISSUE|Issue|Bug) (?:CONFIRMED|REPRODUCED|confirmed|reproduced|still (?:present|exists))",
    re.MULTILINE,
)
_GOOD = re.compile(
    r"^[^\w\n]{0,8}(?:SUCCESS(?:FUL(?:LY)?)?|PASS(?:ED)?|OK|VERIFIED|CORRECT)\b"
    r"|^[^\w\n]{0,4}[\u2713\u2714\u2705]"
    r"|(?::|->|=>|\u2192)[ \t]*(?:PASS(?:ED)?|SUCCESS|OK|CORRECT)[ \t]*[.!]?$"
    rf"|\b(?i:{_QUESTION})True[ \t]*[.!]?$"
    r"|\b(?:passed|successful|successfully|succeeded|as expected|works correctly|working correctly|matches expected)"
    r"[ \t]*[.!\u2705]*$",
    re.MULTILINE,
)
_BROKE = re.compile(r"^Traceback \(most recent call last\)|^(?:Uncaught |Unhandled )", re.MULTILINE)
_LOOKED_AT = 6_000


def verdicts(body: str) -> tuple[str, int]:
    """The first line in which a script says that something went wrong ("" for none), and in how many it says that it went
    well."""
    end = body[-_LOOKED_AT:]
    bad = _BAD.search(end) or _BROKE.search(end)
    line = ""
    if bad is not None:
        begin = end.rfind("\n", 0, bad.start()) + 1
        stop = end.find("\n", bad.start())
        line = end[begin : len(end) if stop < 0 else stop].strip()
    return line, len(_GOOD.findall(end))
