#!/usr/bin/env bash
# sanitize_models.sh EPONA DIR [MEGABYTES]: runs the models of DIR (up to that size, 60) on random inputs with a program
# built under sanitizers. What a model refuses (random ids out of range) is no failure; a sanitizer's report is.
set -euo pipefail
program=$1 dir=$2 limit=${3:-60}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
count=0 failed=0
shopt -s nullglob
for model in "$dir"/*.onnx; do
  [ "$(stat -c %s "$model")" -le $((limit << 20)) ] || continue
  timeout 300 "$program" run "$model" --random --threads 2 >"$log" 2>&1 || true
  count=$((count + 1))
  if grep -qE 'runtime error:|ERROR: AddressSanitizer|WARNING: ThreadSanitizer' "$log"; then
    echo "$model"
    grep -m 3 -E 'runtime error:|ERROR: AddressSanitizer|WARNING: ThreadSanitizer' "$log"
    failed=$((failed + 1))
  fi
done
echo "$count models under sanitizers, $failed with reports"
[ "$failed" -eq 0 ]
