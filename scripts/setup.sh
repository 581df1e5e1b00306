#!/usr/bin/env bash
# Install what a fresh Debian 12 lacks: `setup.sh build` (default), `setup.sh clang`, `setup.sh lint` or
# `setup.sh browser`.
set -euo pipefail

packages=()
need() { # need COMMAND-OR-FILE PACKAGE
  case "$1" in
    /*) [ -e "$1" ] || packages+=("$2") ;;
    *) command -v "$1" >/dev/null || packages+=("$2") ;;
  esac
}

python=${PYTHON:-python3}
case "${1:-build}" in
  build)
    need g++ g++
    need cmake cmake
    need ninja ninja-build
    need git git
    need nm binutils
    need protoc protobuf-compiler
    need /usr/include/gtest/gtest.h libgtest-dev
    need "$python" python3
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then packages+=(python3-venv); fi
    if ! "$python" -c 'import pathlib, sysconfig
assert (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists()' 2>/dev/null; then
      packages+=(python3-dev)
    fi
    ;;
  clang | lint)
    need clang++ clang
    [ "$1" = clang ] || need clang-tidy clang-tidy
    ;;
  browser)
    need chromium chromium
    ;;
  *)
    echo "usage: $0 [build|clang|lint|browser]" >&2
    exit 2
    ;;
esac

if [ ${#packages[@]} -gt 0 ]; then
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo -n)
  if ! command -v apt-get >/dev/null || { [ ${#sudo[@]} -gt 0 ] && ! "${sudo[@]}" true 2>/dev/null; }; then
    echo "missing packages: ${packages[*]}; install them, for example: apt-get install ${packages[*]}" >&2
    exit 1
  fi
  echo "installing ${packages[*]}" >&2
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "$python is older than 3.11; set PYTHON to a newer one" >&2
  exit 1
fi
