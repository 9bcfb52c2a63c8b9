#!/bin/sh
# Makes this checkout ready to run: .venv with the locked packages, and the programs named as arguments.
#
#     tools/bootstrap.sh [java] [redis-server] [maven] [prometheus] [go] [spin] [lowest-versions] [pyright]
#
# java          a Java runtime that Spark can use, 17 or newer; without one the script stops
# redis-server  for the tests; without one the script says so and continues
# maven         fetches the Kafka broker for the tests; without it the script says so and continues
# prometheus    for the tests; unpacked into .programs, not installed, because the package would start a service
# go            builds the checker of histories for the tests into .programs; without it the script says so and continues
# spin          searches the protocol's model, and the tests compare it with the code; with the C compiler it needs
# lowest-versions
#               for the tests: the lowest PySpark and libraries that txbatch allows, in .programs/lowest-versions
# pyright       the type checker, in .programs/pyright
#
# As root it installs missing Debian packages, and says which; other users are told the command. What the tools
# print is shown only if they fail. It is quick and silent if there is nothing to do, and may be interrupted anywhere
# and started again: .venv/.installing exists while pip works, and .venv/.ready, written last, says what was installed.
set -eu
cd "$(dirname "$0")/.."

say() { echo "bootstrap: $*" >&2; }
die() { say "$*"; exit 1; }

# quietly WHAT COMMAND…: says what is done, for how long on a terminal, and shows the command's output if it fails.
quietly() {
    what=$1
    shift
    said=$(mktemp)
    ticker=
    if [ -t 2 ]; then tick "$what" & ticker=$!; else say "$what"; fi
    status=0
    "$@" >"$said" 2>&1 </dev/null || status=$?
    if [ -n "$ticker" ]; then
        kill "$ticker" 2>/dev/null || true
        wait "$ticker" 2>/dev/null || true
        printf '\r\033[K' >&2
    fi
    if [ "$status" -ne 0 ]; then
        cat "$said" >&2
        say "$what: failed with exit code $status"
    elif [ -n "$ticker" ]; then
        say "$what: done"
    fi
    rm -f "$said"
    return "$status"
}

# Runs in the background, where Ctrl-C does not arrive, so it looks whether the script still lives.
tick() {
    seconds=0
    while kill -0 $$ 2>/dev/null; do
        printf '\rbootstrap: %s: %d s ' "$1" "$seconds" >&2
        seconds=$((seconds + 1))
        sleep 1
    done
}

# Debian packages -----------------------------------------------------------------------------------------------

may_apt() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

apt_lists_updated=
apt_update() {
    [ -n "$apt_lists_updated" ] || quietly "updating Debian's package lists" apt-get update ||
        say "some package lists could not be updated; continuing"
    apt_lists_updated=yes
}

apt_install() { quietly "installing Debian's $*" env DEBIAN_FRONTEND=noninteractive apt-get install -y "$@"; }

# Python and .venv ----------------------------------------------------------------------------------------------

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for python in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_new_enough "$python"; then echo "$python"; return; fi
    done
    die "no Python 3.11 or newer is on PATH; install one, or name one: make … PYTHON=/path/to/python3"
}

# Debian's python3 lacks ensurepip, without which a venv has no pip.
require_ensurepip() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    package=python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
    if may_apt; then apt_update; apt_install "$package" || true; fi
    "$1" -c 'import ensurepip, venv' 2>/dev/null ||
        die "$1 cannot create a virtual environment; run: sudo apt-get install -y $package"
}

venv_works() { [ ! -e .venv/.installing ] && is_new_enough .venv/bin/python && .venv/bin/python -m pip --version; }

# What .venv was made from, including the folder, because scripts in .venv/bin contain its path.
key() {
    .venv/bin/python - requirements-build.lock requirements.lock pyproject.toml <<'END' 2>/dev/null
import hashlib, pathlib, sys
locked = b"".join(pathlib.Path(name).read_bytes() for name in sys.argv[1:])
print(hashlib.sha256(locked).hexdigest(), sys.version.split()[0], pathlib.Path.cwd())
END
}

pip_install() { .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off "$@"; }

# pyspark is a source archive, to be built with the locked setuptools and not with the newest. Set by a variable,
# because newer versions of pip have dropped the option.
install_locked() {
    export PIP_USE_PEP517=1
    pip_install --require-hashes -r requirements-build.lock &&
        pip_install --require-hashes --no-build-isolation -r requirements.lock &&
        pip_install --no-deps --no-index --no-build-isolation --editable .
}

ensure_packages() {
    if [ -e .venv/.ready ] && [ "$(cat .venv/.ready)" = "$(key)" ]; then return; fi
    if ! venv_works >/dev/null 2>&1; then
        python=$(find_python)
        require_ensurepip "$python"
        quietly "making .venv with $("$python" --version)" "$python" -m venv --clear .venv
    fi
    rm -f .venv/.ready
    touch .venv/.installing
    quietly "installing packages into .venv (pyspark alone is 450 MB)" install_locked
    rm .venv/.installing
    key >.venv/.ready
}

# Java ----------------------------------------------------------------------------------------------------------

# The program that Spark would start: JAVA_HOME takes precedence over PATH.
java_program() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi; }

# 17 from `version "17.0.15"`, 8 from `version "1.8.0_412"`, 0 from anything else.
java_major() {
    major=$("$(java_program)" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1)
    echo "${major:-0}"
}

ensure_java() {
    if [ "$(java_major)" -ge 17 ]; then return; fi
    if [ -n "${JAVA_HOME:-}" ]; then
        die "Spark needs Java 17 or newer, but JAVA_HOME=$JAVA_HOME is not; unset JAVA_HOME, or name another Java"
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
        say "redis-server is missing, so tests that need it are skipped; run: sudo apt-get install -y redis-server"
}

ensure_maven() {
    if command -v mvn >/dev/null; then return; fi
    if may_apt; then apt_update; apt_install maven || true; fi
    command -v mvn >/dev/null ||
        say "mvn is missing, so tests that need a Kafka broker are skipped; run: sudo apt-get install -y maven"
}

# Prometheus ----------------------------------------------------------------------------------------------------

unpack_prometheus() {
    folder=$(mktemp -d)
    chmod 755 "$folder" # apt downloads as a user of its own
    (cd "$folder" && quietly "fetching Debian's prometheus" apt-get download prometheus) &&
        quietly "unpacking prometheus into .programs" dpkg -x "$folder"/prometheus_*.deb .programs
    rm -rf "$folder"
}

ensure_prometheus() {
    if command -v prometheus >/dev/null || [ -x .programs/usr/bin/prometheus ]; then return; fi
    if may_apt; then apt_update; unpack_prometheus || true; fi
    [ -x .programs/usr/bin/prometheus ] ||
        say "prometheus is missing, so tests that need it are skipped; run: apt-get download prometheus &&" \
            "dpkg -x prometheus_*.deb .programs"
}

# The checker of histories --------------------------------------------------------------------------------------

build_histories() { (cd tests/support/chaos/histories && go build -o ../../../../.programs/histories .); }

ensure_histories() {
    built=.programs/histories
    if [ -x $built ] && [ -z "$(find tests/support/chaos/histories -newer $built)" ]; then return; fi
    if ! command -v go >/dev/null && may_apt; then apt_update; apt_install golang-go || true; fi
    if ! command -v go >/dev/null || ! quietly "building the checker of histories" build_histories; then
        say "histories of clients are not checked; run: sudo apt-get install -y golang-go"
    fi
}

# SPIN ----------------------------------------------------------------------------------------------------------

ensure_spin() {
    if command -v spin >/dev/null && command -v gcc >/dev/null; then return; fi
    if may_apt; then apt_update; apt_install spin gcc libc6-dev || true; fi
    command -v spin >/dev/null && command -v gcc >/dev/null ||
        say "spin or gcc is missing, so tests of the model are skipped; run: sudo apt-get install -y spin gcc libc6-dev"
}

# Packages in folders of their own ----------------------------------------------------------------------------------

# After ensure_packages, whose pip and setuptools it uses.
ensure_folder() {
    lock=requirements-$1.lock folder=.programs/$2
    if cmp -s "$lock" "$folder/.lock"; then return; fi
    rm -rf "$folder"
    PIP_USE_PEP517=1 quietly "installing what $lock names into $folder" \
        .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --no-deps --require-hashes \
        --no-build-isolation --target "$folder" -r "$lock"
    cp "$lock" "$folder/.lock"
}

# ---------------------------------------------------------------------------------------------------------------

lowest_versions= pyright=
for program in "$@"; do
    case $program in
        java) ensure_java ;;
        redis-server) ensure_redis_server ;;
        maven) ensure_maven ;;
        prometheus) ensure_prometheus ;;
        go) ensure_histories ;;
        spin) ensure_spin ;;
        lowest-versions) lowest_versions=yes ;;
        pyright) pyright=yes ;;
        *) die "cannot install $program; name java, redis-server, maven, prometheus, go, spin, lowest-versions or pyright" ;;
    esac
done
ensure_packages
[ -z "$lowest_versions" ] || ensure_folder lowest lowest-versions
[ -z "$pyright" ] || ensure_folder pyright pyright
