#!/usr/bin/env bash
# Every test, in the order cheap to dear; all run even when one fails. Called by `make test`.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
run() { # run NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

run "sizes" "$PY" scripts/check_sizes.py
run "format" scripts/lint.sh --format
run "exports" "$PY" scripts/check_exports.py --build "$BUILD"
run "wheel" "$PY" scripts/check_wheel.py dist
run "ctest" ctest --test-dir "$BUILD" --output-on-failure -j "$JOBS"
run "example" "$PY" scripts/test_example.py "$BUILD"
run "readme" "$PY" scripts/test_readme.py "$BUILD"
run "models" "$PY" scripts/models.py --mark core
for folder in tests/python tests/providers tests/conformance tests/models tests/clients; do
  if [ -d "$folder" ]; then run "$folder" "$PY" -m pytest -q "$folder"; fi
done

if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "all passed"
