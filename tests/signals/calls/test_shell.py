"""Shell command lines: what is run, what is written, whose status is returned."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.signals.calls.shell import parse
from turnout.signals.calls.tools import read_call


@pytest.mark.parametrize(
    ("command", "kind", "changes"),
    [
        ("cd /app && pytest -q", "test", False),
        ("FOO=1 env BAR=2 timeout 60 python -m pytest", "test", False),
        ("uv run pytest", "test", False),
        ("npm run -s test -- --pool=threads", "test", False),
        ("npm run lint 2>&1", "test", False),
        ("npm run build", "execute", False),
        ("cargo test --all", "test", False),
        ("go test ./...", "test", False),
        ("go build ./...", "execute", False),
        ("mvn -q test", "test", False),
        ("./gradlew test", "test", False),
        ("make check", "test", False),
        ("ctest --output-on-failure", "test", False),
        ("./tests/runtests.py migrations", "test", False),
        ("python test_fix.py", "test", False),
        ("python manage.py test app", "test", False),
        ("python reproduce.py", "execute", False),
        ("pytest --fixtures", "execute", False),
        ("ls -la", "read", False),
        ("nl -ba a.py | sed -n '1,10p'", "read", False),
        ("grep -rn 'a; b && c' src | head -3", "search", False),
        ("cat log | grep foo", "read", False),
        ("git log --oneline | head", "read", False),
        ("git grep foo", "search", False),
        ("git checkout -- a.py", "edit", True),
        ("git merge origin/main", "execute", False),
        ("sed -i 's/a/b/' x", "edit", True),
        ("sed -n '1,5p' x 2>/dev/null", "read", False),
        ("echo hi > out.txt", "write", True),
        ("echo hi > /dev/null", "execute", False),
        ("cat <<'EOF' > check_it.py\nimport os; os.remove('x')\nEOF", "write", True),
        ("cat <<'EOF' > run_it.py\nprint(1)\nEOF\npython run_it.py", "execute", True),
        ("python - <<'EOF'\nprint('pytest')\nEOF", "execute", False),
        ("apply_patch <<'EOF'\n*** Begin Patch\nEOF", "edit", True),
        ("bash -lc 'cd x && pytest'", "test", False),
        ("sudo rm -rf build", "execute", True),
        ("black .", "edit", True),
        ("black --check .", "test", False),
        ("ruff check --fix", "test", True),
        ("find . -name '*.pyc' -delete", "edit", True),
        ("sleep 30 && gh pr checks 4", "read", False),
        ("if [ -f x ]; then cat x; fi", "read", False),
        ("for f in *.py; do wc -l $f; done", "read", False),
        ("echo 'cargo test'", "execute", False),
    ],
)
def test_kind_and_change(command: str, kind: str, changes: bool) -> None:
    seen = read_call("bash", json.dumps({"command": command}))
    assert (seen.kind, seen.changes) == (kind, changes)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "cd /app && pytest -q"},
        {"cmd": "pytest -q"},
        {"command": ["bash", "-lc", "cd /app && pytest -q"]},
        {"command": ["pytest", "-q"]},
        {"input": json.dumps({"command": "pytest -q"})},
        {"action": {"type": "exec", "command": ["pytest", "-q"]}},
    ],
)
def test_every_spelling_of_the_argument(arguments: dict[str, Any]) -> None:
    for text in (json.dumps(arguments), json.dumps(json.dumps(arguments))):
        assert read_call("shell", text).kind == "test"


def test_codex_patches_are_edits() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"
    seen = read_call("apply_patch", patch)
    assert (seen.kind, seen.changes, seen.target) == ("edit", True, "src/a.py")
    assert read_call("shell", json.dumps({"command": ["apply_patch", patch]})).kind == "edit"


def test_quotes_and_redirections_are_taken_apart() -> None:
    first, second = parse("""A=1 grep "a | b" 'c;d' e\\ f 2>&1 >out.txt | tee log""")
    assert first.words == ("grep", "a | b", "c;d", "e f")
    assert first.writes == ("out.txt",)
    assert (second.words, second.joined) == (("tee", "log"), "|")


def test_targets_hold_no_arguments_that_may_be_secret() -> None:
    seen = read_call("bash", '{"command": "curl -H \'Authorization: Bearer abc\' https://u:p@example.com"}')
    assert seen.target == "curl"


@settings(deadline=None)
@given(st.text(alphabet="ab '\"\\|&;<>$(){}`#=\n-", max_size=80))
def test_any_text_is_read_without_raising(line: str) -> None:
    parse(line)
    read_call("bash", json.dumps({"command": line}))
    read_call("bash", line)


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("npm run lint", "npm run lint"),
        ("gh pr checks 4", "gh pr checks"),
        ("pytest -q tests/test_a.py", "pytest tests/test_a.py"),
        ("python x.py --key secret", "python x.py"),
        ("rg 'my secret' src", "rg src"),
        ("git commit -m 'my secret'", "git commit"),
    ],
)
def test_targets_name_the_program_and_what_it_acts_on(command: str, target: str) -> None:
    assert read_call("bash", json.dumps({"command": command})).target == target


@pytest.mark.parametrize(
    ("command", "kind", "changes"),
    [
        ("(cd app && pytest) | tail", "test", False),
        ("{ make; make test; }", "test", False),
        ("pytest || true", "test", False),
        ("false || pytest", "test", False),
        ("FOO='a b' BAR=\"$(pwd)\" pytest", "test", False),
        ("timeout -k 5 60s npx vitest run", "test", False),
        ("nice -n 10 cargo nextest run", "test", False),
        ("sh -c 'cd x; bash -lc \"go test ./...\"'", "test", False),
        ("docker compose exec web pytest", "execute", False),
        ("find . -name '*.py' | xargs grep -n foo", "search", False),
        ("find . -name '*.orig' | xargs rm", "execute", True),
        ("git ls-files | xargs sed -i s/a/b/", "edit", True),
        ("cat a 2>/dev/null", "read", False),
        ("cat a &>/dev/null", "read", False),
        ("cat a 2>&1 >/dev/null", "read", False),
        ("cat a > b", "write", True),
        ("cat <<'E' > a.py\nx\nE", "write", True),
        ("cat > a.py <<-E\n\tx > y\n\tE", "write", True),
        ("tee a.txt <<< hello", "write", True),
        ("python - <<'E' > out.txt\nprint(1)\nE", "execute", True),
        ('while read f; do wc -l "$f"; done < files', "read", False),
        ("case $x in a) pytest;; esac", "test", False),
        ("export A=1; . venv/bin/activate; python -m pytest -q", "test", False),
        ("cd /a\npytest \\\n  -q \\\n  tests", "test", False),
        ("pnpm -r run test", "test", False),
        ("yarn workspace a test", "test", False),
        ("bun test", "test", False),
        ("deno test -A", "test", False),
        ("node --test", "test", False),
        ("python -m tox -e py311", "test", False),
        ("nox -s lint", "test", False),
        ("mvn -q -DskipTests package", "execute", False),
        ("./gradlew check", "test", False),
        ("dotnet test --no-build", "test", False),
        ("bundle exec rspec spec", "test", False),
        ("vendor/bin/phpunit", "test", False),
        ("mkdir -p a/b", "execute", True),
        ("git commit -am 'test: x'", "execute", False),
        ("echo done", "execute", False),
    ],
)
def test_lines_of_every_shape(command: str, kind: str, changes: bool) -> None:
    seen = read_call("bash", json.dumps({"command": command}))
    assert (seen.kind, seen.changes) == (kind, changes)


def test_lines_that_a_terminal_broke_are_read_whole() -> None:
    broken = (
        'find . -name "*.py" -o -name \n"*.yaml" | xargs grep -l -E \n"(AKIA[0-9]{16}|ghp_[a-z]{36})" \n2>/dev/null'
    )
    assert read_call("bash", json.dumps({"command": broken})).kind == "search"
    assert [c.words[0] for c in parse("grep -r foo . \n--exclude-dir=.git\nls")] == ["grep", "ls"]


@pytest.mark.parametrize(
    "outer", ["{}", "({})", "bash -lc '{}'", "cd x && {}", "timeout 60 {}", "{} | cat", "env A=1 {}"]
)
@pytest.mark.parametrize("inner", ["pytest", "cargo test", "npm test", "rg foo", "git status", "sed -i s/a/b/ x"])
def test_what_surrounds_a_command_does_not_change_what_it_does(outer: str, inner: str) -> None:
    plain = read_call("bash", json.dumps({"command": inner}))
    seen = read_call("bash", json.dumps({"command": outer.format(inner)}))
    assert (seen.kind, seen.changes) == (plain.kind, plain.changes)


WORDS = st.lists(
    st.sampled_from(["pytest", "ls", "a.py", "-q", "'a b'", '"$x"', "$(cd y; ls)", "`ls`", "A=1"]), max_size=4
)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(WORDS, st.sampled_from([";", "&&", "||", "|", "\n", "&", "> f;", "2>/dev/null;", "<<E\nx\nE\n"]))
    )
)
def test_commands_are_as_many_as_the_operators_part(pieces: list[tuple[list[str], str]]) -> None:
    line = " ".join(" ".join([*words, operator]) for words, operator in pieces)
    found = parse(line)
    assert len(found) <= len(pieces)
    assert all(c.words or c.writes for c in found)
    assert sum(len(c.words) for c in found) <= sum(len(words) for words, _ in pieces)
