"""Scrubbing: no secret and no home folder's name reaches the ledger."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.importers.ledgers import imported
from tests.evaluate.importers.samples import lines

from turnout.evaluate.importers.scrub import scrub

SECRETS = (
    "sk-" + "ant-api03-Abcdefghijklmnop0123456789",
    "sk-" + "proj-aB3dE5gH7jK9mN1pQ3sT5",
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "github_pat_" + "11ABCDEFG0abcdefghijklmnop",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "xoxb-" + "123456789012-abcdefghijkl",
    "hf_" + "AbCdEfGhIjKlMnOpQrStUvWx",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
)


@pytest.mark.parametrize("secret", SECRETS)
@given(
    before=st.sampled_from(["", "key is ", "export TOKEN=", '{"a":"', "see\n"]),
    after=st.sampled_from(["", " ", '"}', "\n", "'"]),
)
def test_secrets_go(secret: str, before: str, after: str) -> None:
    assert secret not in scrub(before + secret + after)
    assert secret[8:] not in scrub(before + secret + after)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("cd /home/ann/shop", "cd /home/user/shop"),
        ("/Users/ann.lee/shop/a.py:3", "/Users/user/shop/a.py:3"),
        (r"C:\Users\Ann\shop", r"C:\Users\user\shop"),
        (r'"C:\\Users\\Ann\\shop"', r'"C:\\Users\\user\\shop"'),
        ("projects/-home-ann-shop/x.jsonl", "projects/-home-user-shop/x.jsonl"),
        ("postgres://ann:hunter22@db/shop", "postgres://[redacted]@db/shop"),
        ('password = "hunter22hunter"', 'password = "[redacted]"'),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "[redacted]"),
        ("/usr/home", "/usr/home"),
        ("the password is asked for", "the password is asked for"),
        ("a task-list of sk-learn", "a task-list of sk-learn"),
    ],
)
def test_what_becomes_of_a_text(text: str, clean: str) -> None:
    assert scrub(text) == clean


@given(st.text())
def test_scrubbing_twice_is_scrubbing_once(text: str) -> None:
    assert scrub(scrub(text)) == scrub(text)


def test_nothing_of_them_reaches_the_ledger(tmp_path: Path) -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": f"echo {SECRETS[0]}"})},
    }
    rows = [
        {
            "session_id": "/home/annabel/x",
            "model": "m",
            "messages": [
                {"role": "user", "content": f"use {SECRETS[1]} in /home/annabel/shop"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {
                    "role": "tool",
                    "tool_call_id": "c",
                    "content": f"Error: /home/annabel/{SECRETS[2]} not found",
                    "returncode": 1,
                },
                {"role": "assistant", "content": "done in /home/annabel"},
            ],
        }
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(rows))
    imported(path, tmp_path / "a.db", scrub=True, capture="full")
    held = (
        (tmp_path / "a.db").read_bytes() + (tmp_path / "a.db-wal").read_bytes()
        if (tmp_path / "a.db-wal").exists()
        else (tmp_path / "a.db").read_bytes()
    )
    for secret in (*SECRETS[:3], "annabel"):
        assert secret.encode() not in held
    imported(path, tmp_path / "b.db", capture="full")
    assert b"annabel" in (tmp_path / "b.db").read_bytes()
