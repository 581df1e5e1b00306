#!/usr/bin/env bash
# test_example.sh BUILD: install into a scratch prefix, build examples/cpp against it with find_package(epona), run it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
prefix=$PWD/$build/install
cmake --install "$build" --prefix "$prefix" --component sdk >/dev/null
cmake -S examples/cpp -B "$build/example" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build/example" >/dev/null
ctest --test-dir "$build/example" --output-on-failure
