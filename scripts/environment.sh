# Sourced by the other scripts from the repository root: makes .venv and keeps it up to date. POSIX sh.

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed; name one with PYTHON=/path/to/python" >&2
    return 1
}

make_venv() {
    # A folder without a working pip is what an interrupted or ensurepip-less `venv` leaves behind.
    if .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        return
    fi
    python=$(find_python) || exit 2
    echo "making .venv with $("$python" --version)" >&2
    "$python" -m venv --clear .venv || {
        echo "could not make a virtual environment (Debian, Ubuntu: apt-get install python3-venv)" >&2
        exit 2
    }
}

# install STAMP ARGUMENTS...: pip install, unless this was done for the present pyproject.toml and constraints.txt.
install() {
    stamp=.venv/.installed-$1
    shift
    state=$(cat pyproject.toml constraints.txt | cksum)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then
        return
    fi
    echo "installing into .venv (once, about a minute)" >&2
    .venv/bin/python -m pip install -qq --upgrade 'pip>=25.1' || exit 2 # the first that knows --group
    .venv/bin/python -m pip install -qq --constraint constraints.txt "$@" || exit 2
    echo "$state" >"$stamp"
}
