#!/usr/bin/env bash
# lint.sh BUILD [FILE...]: clang-format on the files given (all of ours by default), clang-tidy on the .cc among them.
# lint.sh --format [FILE...]: clang-format alone.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cc' '*.h' ':!cmake'); fi
"${CLANG_FORMAT:-.venv/bin/clang-format}" --dry-run --Werror "${files[@]}"
[ "$build" != --format ] || exit 0
sources=()
for file in "${files[@]}"; do
  # Only what this configuration compiles has flags to check it with.
  if [[ $file == *.cc ]] && grep -qF "/$file\"" "$build/compile_commands.json"; then sources+=("$file"); fi
done
[ ${#sources[@]} -gt 0 ] || exit 0
printf '%s\0' "${sources[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p "$build" --quiet --warnings-as-errors='*'
echo "lint: ${#files[@]} files formatted, ${#sources[@]} checked"
