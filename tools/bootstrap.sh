#!/bin/sh
# Makes this checkout ready to run: .venv with the locked packages, and the programs named as arguments.
#
#     tools/bootstrap.sh [java] [redis-server] [maven]
#
# java          a Java runtime that Spark can use, 17 or newer; without one it stops
# redis-server  for the tests; without one it says so and goes on
# maven         fetches the Kafka broker for the tests; without it, it says so and goes on
#
# Debian packages are installed by root only, each command printed first; anybody else is told the command.
# Quick when there is nothing to do. It may be interrupted anywhere and started again: .venv/.installing stands
# while pip works, and .venv/.ready, written last, names what was installed.
set -eu
cd "$(dirname "$0")/.."

say() { echo "bootstrap: $*" >&2; }
die() { say "$*"; exit 1; }
run() { say "+ $*"; "$@" >&2; }

# Debian packages -----------------------------------------------------------------------------------------------

may_apt() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

apt_lists_updated=
apt_update() {
    [ -n "$apt_lists_updated" ] || run apt-get update || say "not every package list could be updated; going on"
    apt_lists_updated=yes
}

apt_install() { run env DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"; }

# Python and .venv ----------------------------------------------------------------------------------------------

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for python in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$python"; then echo "$python"; return; fi
    done
    die "Python 3.11 or newer is needed and not on PATH; install it, or name it: make … PYTHON=/path/to/python3"
}

# Debian's python3 comes without ensurepip, and a venv cannot get pip without it.
require_ensurepip() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    package=python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
    if may_apt; then apt_update; apt_install "$package" || true; fi
    "$1" -c 'import ensurepip, venv' 2>/dev/null ||
        die "$1 cannot create a virtual environment; run: sudo apt-get install -y $package"
}

venv_works() { [ ! -e .venv/.installing ] && is_new_enough .venv/bin/python && .venv/bin/python -m pip --version; }

# What .venv was made from; the folder too, because scripts in .venv/bin carry its path.
key() {
    .venv/bin/python - requirements-build.lock requirements.lock pyproject.toml <<'END' 2>/dev/null
import hashlib, pathlib, sys
locked = b"".join(pathlib.Path(name).read_bytes() for name in sys.argv[1:])
print(hashlib.sha256(locked).hexdigest(), sys.version.split()[0], pathlib.Path.cwd())
END
}

pip_install() { run .venv/bin/python -m pip install --disable-pip-version-check "$@"; }

ensure_packages() {
    if [ -e .venv/.ready ] && [ "$(cat .venv/.ready)" = "$(key)" ]; then return; fi
    if ! venv_works >/dev/null 2>&1; then
        python=$(find_python)
        require_ensurepip "$python"
        run "$python" -m venv --clear .venv
    fi
    rm -f .venv/.ready
    touch .venv/.installing
    say "installing the locked packages into .venv; the first time takes some minutes (pyspark is 450 MB)"
    # pyspark comes as a source archive: it is built with the locked setuptools, not with whatever is newest.
    # Said by variable, because newer versions of pip know no other way and dropped the option.
    export PIP_USE_PEP517=1
    pip_install --require-hashes -r requirements-build.lock
    pip_install --require-hashes --no-build-isolation -r requirements.lock
    pip_install --no-deps --no-index --no-build-isolation --editable .
    rm .venv/.installing
    key >.venv/.ready
}

# Java ----------------------------------------------------------------------------------------------------------

# The program that Spark would start: JAVA_HOME wins over PATH.
java_program() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi; }

# 17 from `version "17.0.15"`, 8 from `version "1.8.0_412"`, 0 from anything else.
java_major() {
    major=$("$(java_program)" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1)
    echo "${major:-0}"
}

ensure_java() {
    if [ "$(java_major)" -ge 17 ]; then return; fi
    if [ -n "${JAVA_HOME:-}" ]; then
        die "Spark needs Java 17 or newer and JAVA_HOME=$JAVA_HOME is not one; unset JAVA_HOME or name another"
    fi
    if may_apt; then
        apt_update
        package=openjdk-17-jre-headless
        apt-cache show "$package" >/dev/null 2>&1 || package=default-jre-headless
        apt_install "$package" || true
    fi
    [ "$(java_major)" -ge 17 ] ||
        die "Spark needs Java 17 or newer; run: sudo apt-get install -y openjdk-17-jre-headless" \
            "(or default-jre-headless where 17 is not offered)"
}

# Redis ---------------------------------------------------------------------------------------------------------

ensure_redis_server() {
    if command -v redis-server >/dev/null; then return; fi
    if may_apt; then apt_update; apt_install redis-server || true; fi
    command -v redis-server >/dev/null ||
        say "no redis-server: the tests that want one are skipped; for them run: sudo apt-get install -y redis-server"
}

ensure_maven() {
    if command -v mvn >/dev/null; then return; fi
    if may_apt; then apt_update; apt_install maven || true; fi
    command -v mvn >/dev/null ||
        say "no mvn: the tests that want a Kafka broker are skipped; for them run: sudo apt-get install -y maven"
}

# ---------------------------------------------------------------------------------------------------------------

for program in "$@"; do
    case $program in
        java) ensure_java ;;
        redis-server) ensure_redis_server ;;
        maven) ensure_maven ;;
        *) die "$program is not something to install: java, redis-server or maven" ;;
    esac
done
ensure_packages
