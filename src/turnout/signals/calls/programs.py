"""What programs do and what their exit codes mean, as data. Add a program: one word in a row."""

from typing import TypeAlias

from turnout.signals.observation import ErrorClass, ToolKind


def words(line: str) -> tuple[str, ...]:
    """The words of a table's row."""
    return tuple(line.split())


def kinds(rows: dict[ToolKind, str]) -> dict[str, ToolKind]:
    """A table that gives the kind of each word from rows of words by kind."""
    return {word: kind for kind, line in rows.items() for word in line.split()}


PROGRAMS: dict[str, ToolKind] = kinds(
    {
        "read": """cat head tail less more nl wc stat file du df ps top env printenv pwd date whoami hostname uname id which
            whereis type readlink realpath basename dirname diff cmp comm cut sort uniq tr column jq yq xxd od hexdump
            strings md5sum sha256sum tac rev bat zcat zless gh lsof free uptime history man info pgrep netstat ss dig
            nslookup host ping curl wget http false test [ [[ read jobs umask ulimit seq expr bc awk gawk mawk sed ls
            tree exa eza dir objdump nm ldd lscpu nvidia-smi sqlite3 psql mysql redis-cli tput clear
            getent locale timedatectl journalctl dmesg""",
        "search": "grep egrep fgrep rg ag ack zgrep find fd fdfind locate fzf ripgrep",
        "write": "tee touch cp install ln dd mktemp rsync scp truncate",
        "edit": "mv patch apply_patch applypatch sponge isort autopep8 yapf",
        "test": """pytest py.test nosetests nose2 tox nox unittest jest vitest mocha ava jasmine karma cypress playwright
            ctest rspec minitest phpunit pest behave lettuce robot bats prove busted flake8 pylint ruff mypy pyright
            pyflakes pycodestyle pydocstyle bandit eslint tslint stylelint standard xo biome tsc shellcheck hadolint
            golangci-lint staticcheck clippy-driver rubocop phpstan psalm ktlint detekt checkstyle swiftlint yamllint
            markdownlint clang-tidy cppcheck black pre-commit runtests.py runtests coverage trial stestr green ward
            basedpyright ty vulture lint-imports""",
    }
)
"""Kind by program name; anything else a shell runs is `execute`."""

HOUSEKEEPING: frozenset[str] = frozenset(words("rm rmdir mkdir chmod chown unlink"))
"""Programs that change the workspace but say little of what a line is for: others beside them decide its kind."""

SUBCOMMANDS: dict[str, dict[str, ToolKind]] = {
    "git": kinds(
        {
            "read": "status log show diff branch blame remote describe rev-parse rev-list ls-files ls-tree cat-file config tag"
            " shortlog reflog whatchanged show-ref symbolic-ref name-rev merge-base fetch help version",
            "search": "grep",
            "edit": "apply am restore checkout reset revert rm mv clean",
        }
    ),
    "go": kinds({"test": "test vet", "read": "version env list doc", "edit": "fmt"}),
    "cargo": kinds({"test": "test nextest clippy check", "read": "tree metadata version search", "edit": "fmt fix"}),
    "npm": kinds({"test": "test t tst", "read": "ls list view info outdated audit"}),
    "yarn": kinds({"test": "test lint", "read": "list info why"}),
    "pnpm": kinds({"test": "test t lint", "read": "ls list why"}),
    "bun": kinds({"test": "test"}),
    "deno": kinds({"test": "test lint check", "edit": "fmt"}),
    "node": kinds({"test": "--test"}),
    "dotnet": kinds({"test": "test"}),
    "mvn": kinds({"test": "test verify surefire:test integration-test"}),
    "mvnw": kinds({"test": "test verify surefire:test integration-test"}),
    "gradle": kinds({"test": "test check"}),
    "gradlew": kinds({"test": "test check"}),
    "sbt": kinds({"test": "test testOnly"}),
    "make": kinds({"test": "test tests check lint unittest"}),
    "just": kinds({"test": "test tests check lint"}),
    "mix": kinds({"test": "test credo", "edit": "format"}),
    "swift": kinds({"test": "test"}),
    "bazel": kinds({"test": "test", "read": "query"}),
    "zig": kinds({"test": "test", "edit": "fmt"}),
    "composer": kinds({"test": "test"}),
    "rake": kinds({"test": "test spec"}),
    "rails": kinds({"test": "test"}),
    "manage.py": kinds({"test": "test check"}),
    "setup.py": kinds({"test": "test"}),
    "docker": kinds({"read": "ps images logs inspect version info"}),
    "kubectl": kinds({"read": "get describe logs version top"}),
    "pip": kinds({"read": "list show freeze check"}),
    "pip3": kinds({"read": "list show freeze check"}),
    "conda": kinds({"read": "list info search"}),
    "coverage": kinds({"read": "report"}),
    "ruff": kinds({"edit": "format"}),
    "biome": kinds({"edit": "format"}),
}
"""Kind by the first matching argument of programs that do many things. A leading `--` word may be listed too."""

SCRIPT_TEST_WORDS = ("test", "tests", "lint", "linting", "check", "spec", "specs", "typecheck", "e2e", "verify")
"""`npm run X`, `tox -e X`, `make X`: X with one of these words is a test run."""

TEST_FILE_WORDS = ("test", "tests", "spec", "specs", "runtests")
"""`python X.py`: X with one of these words is a test run."""

RUNNERS = frozenset(
    words(
        "npm yarn pnpm bun deno make just task rake composer gradle gradlew mvn mvnw sbt ninja cmake hatch pdm invoke nox"
    )
)
"""Programs that run named scripts."""

INTERPRETERS = frozenset(
    words(
        "python python2 python3 pypy pypy3 node deno bun ruby perl php lua bash sh zsh dash ksh julia Rscript java ts-node tsx"
        " swift elixir scala groovy pwsh"
    )
)
SHELLS = frozenset(words("bash sh zsh dash ksh ash fish"))

WRAPPERS: dict[str, int] = {
    "env": 0, "sudo": 0, "doas": 0, "time": 0, "nohup": 0, "nice": 0, "ionice": 0, "stdbuf": 0, "command": 0, "exec": 0,
    "builtin": 0, "eval": 0, "timeout": 1, "gtimeout": 1, "xvfb-run": 0, "npx": 0, "bunx": 0, "pnpx": 0, "uvx": 0, "setsid": 0,
    "unbuffer": 0, "caffeinate": 0, "catchsegv": 0, "xargs": 0, "watch": 0, "strace": 0, "ltrace": 0, "script": 0,
}  # fmt: skip
"""Programs that run another program given as argument, with how many plain arguments come before it."""

WRAPPER_PAIRS = frozenset(
    {
        ("uv", "run"),
        ("poetry", "run"),
        ("pipenv", "run"),
        ("pdm", "run"),
        ("hatch", "run"),
        ("rye", "run"),
        ("pixi", "run"),
        ("conda", "run"),
        ("bundle", "exec"),
        ("pnpm", "exec"),
        ("npm", "exec"),
        ("yarn", "exec"),
        ("dotenv", "run"),
        ("coverage", "run"),
    }
)
"""Programs that run another program after a sub-command."""

WRITING_FLAGS: dict[str, tuple[str, ...]] = {
    "sed": ("-i", "--in-place"),
    "perl": ("-i", "-pi", "-pie", "-p -i"),
    "awk": ("inplace",),
    "gawk": ("inplace",),
    "gofmt": ("-w",),
    "goimports": ("-w",),
    "prettier": ("--write", "-w"),
    "eslint": ("--fix",),
    "ruff": ("--fix",),
    "stylelint": ("--fix",),
    "rubocop": ("-a", "-A", "--autocorrect"),
    "clang-format": ("-i",),
    "find": ("-delete",),
    "sort": ("-o",),
    "curl": ("-o", "-O", "--output"),
    "yq": ("-i",),
    "black": (),
    "isort": (),
}
"""Flags with which a program changes files."""

FORMATTERS = frozenset(
    {"black", "isort", "autopep8", "yapf", "ruff format", "cargo fmt", "go fmt", "prettier", "biome format"}
)
"""Programs that change files unless told to check only."""

CHECK_FLAGS = ("--check", "--diff", "--dry-run", "-c", "-l", "--list-different")

NOT_A_RUN = frozenset(
    {"--version", "-V", "--help", "-h", "--fixtures", "--collect-only", "--co", "--list", "--listTests"}
)
"""Arguments with which a test runner runs no test."""

FETCHERS: frozenset[str] = frozenset(
    words(
        "pip pip3 pipx uv conda mamba micromamba npm yarn pnpm bun apt apt-get apk yum dnf brew wget curl git docker podman gem"
        " cargo go mvn gradle composer poetry huggingface-cli hf aria2c rustup nvm pyenv"
    )
)
"""Programs that talk to the network to fetch things."""

WRITING_CODE = ("write_text(", "write_bytes(", ".write(", "writeFileSync(", "appendFileSync(", "writelines(")
"""Calls in a script given on the command line that write."""

FETCHING_CODE = (
    "load_dataset(", "from_pretrained(", "snapshot_download(", "hf_hub_download(", "urlretrieve(", "urlopen(", "requests.get(",
)  # fmt: skip
"""Calls in a script given on the command line that download."""

FETCHING = frozenset(
    words(
        "install add download clone pull fetch update upgrade create sync ci restore get wget curl build mod env i up"
    )
)
"""Sub-commands of them that download."""

Meaning: TypeAlias = tuple[ErrorClass, str]

EXIT_CODES: dict[str, dict[int, Meaning]] = {
    "grep": {1: ("informational", "no_match"), 2: ("capability", "usage"), 123: ("informational", "no_match")},
    "find": {1: ("informational", "absent_path")},
    "diff": {1: ("none", "differs"), 2: ("capability", "usage")},
    "test": {1: ("informational", "false"), 2: ("capability", "usage")},
    "which": {1: ("informational", "absent")},
    "pgrep": {1: ("informational", "no_match")},
    "ls": {1: ("informational", "absent_path"), 2: ("informational", "absent_path")},
    "pytest": {
        1: ("capability", "test_failure"),
        2: ("capability", "test_error"),
        3: ("capability", "test_error"),
        4: ("capability", "usage"),
        5: ("informational", "no_tests"),
    },
    "checks": {8: ("informational", "pending"), 1: ("capability", "ci_failure")},
    "curl": {
        6: ("critical", "unreachable"),
        7: ("capability", "connection_refused"),
        22: ("capability", "http_error"),
        28: ("capability", "timeout"),
        35: ("critical", "unreachable"),
        56: ("critical", "unreachable"),
    },
    "git diff": {1: ("none", "differs")},
    "git merge": {1: ("capability", "merge")},
    "git push": {1: ("capability", "merge")},
    "rm": {1: ("informational", "absent_path")},
    "false": {1: ("informational", "false")},
    "kill": {1: ("informational", "absent")},
}
"""Exit codes that say something else than plain failure, by program family."""

FAMILIES: dict[str, str] = {
    **dict.fromkeys(words("egrep fgrep rg ag ack zgrep ripgrep"), "grep"),
    **dict.fromkeys(["git grep"], "grep"),
    **dict.fromkeys(["fd", "fdfind", "locate"], "find"),
    **dict.fromkeys(["cmp", "comm"], "diff"),
    **dict.fromkeys(["[", "[["], "test"),
    **dict.fromkeys(["type", "command", "whereis"], "which"),
    **dict.fromkeys(["pkill", "killall"], "kill"),
    **dict.fromkeys(words("cat head tail stat readlink du wc nl sed tree file less realpath"), "ls"),
    **dict.fromkeys(["py.test", "runtests"], "pytest"),
    **dict.fromkeys(["gh pr", "gh run"], "checks"),
}

FAILS_AS: dict[str, str] = {
    **dict.fromkeys(
        [
            *words("gcc g++ clang clang++ cc c++ javac kotlinc rustc swiftc ghc ocamlc gfortran ld msbuild"),
            *("go build", "cargo build", "cargo check", "dotnet build", "swift build", "zig build", "gradle build"),
        ],
        "compile",
    ),
    **dict.fromkeys(["git merge", "git rebase", "git cherry-pick", "git pull", "git push", "git stash"], "merge"),
    **dict.fromkeys(["git apply", "git am", "patch", "apply_patch", "applypatch"], "patch"),
    "tsc": "compile",
}
"""How a failure of a program is called when its output says nothing known, by program or with its sub-command."""

LINTERS: frozenset[str] = frozenset(
    [
        *words(
            """flake8 pylint ruff mypy pyright basedpyright pyflakes pycodestyle pydocstyle bandit eslint tslint stylelint
            standard xo biome shellcheck hadolint golangci-lint staticcheck rubocop phpstan psalm ktlint detekt checkstyle
            swiftlint yamllint markdownlint clang-tidy cppcheck black isort pre-commit ty vulture lint-imports prettier"""
        ),
        *(
            "go vet",
            "cargo clippy",
            "cargo fmt",
            "deno lint",
            "yarn lint",
            "pnpm lint",
            "make lint",
            "just lint",
            "mix credo",
        ),
    ]
)
"""Programs of kind test that look at code rather than run it."""

LINT_WORDS = ("lint", "format", "typecheck", "type-check", "prettier", "style")
"""Words in the names of scripts that look at code rather than run it."""

SIGNALS: dict[int, Meaning] = {
    124: ("capability", "timeout"),
    126: ("capability", "permission_denied"),
    127: ("capability", "command_not_found"),
    130: ("informational", "interrupted"),
    134: ("capability", "crash"),
    136: ("capability", "crash"),
    137: ("capability", "killed"),
    139: ("capability", "crash"),
    143: ("capability", "killed"),
}
"""Exit codes that mean the same for every program."""

PROBES = frozenset(
    words("curl wget nc ncat pg_isready redis-cli ping docker kubectl gh ss lsof netstat ps pgrep mysqladmin")
)
"""Programs used to wait for something to come up."""
