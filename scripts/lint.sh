#!/usr/bin/env bash
# lint.sh BUILD [FILE...]: clang-format on the files given (all of ours by default), clang-tidy on the .cc among them.
# lint.sh BUILD changed: on what differs from main (BASE=... for another branch); a header is checked through the sources
#   that include it, three at most.
# lint.sh BUILD --analyze [FILE...]: clang's static analyzer, and nothing else, on the .cc among them; changed works here too.
# lint.sh --format [FILE...]: clang-format alone.
#
# BUILD may be a g++ build. JOBS=... sets how many batches go at a time. All sources without the analyzer take some
# 12 minutes of one core; the analyzer takes 2 to 6 seconds a source, over a SIMD kernel up to 20. Sources that BUILD does
# not compile, such as the fuzzer, are not checked.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
analyzer='-*,clang-analyzer-core.*,clang-analyzer-cplusplus.*'
export CHECKS=${CHECKS:--clang-analyzer-*}
if [ "${1:-}" = --analyze ]; then
  CHECKS=$analyzer
  shift
fi
files=("$@")
if [ "${files[*]}" = changed ]; then
  base=$(git merge-base HEAD "${BASE:-main}")
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$base" -- '*.cc' '*.h' ':!cmake'
                         git ls-files -o --exclude-standard -- '*.cc' '*.h'; } | sort -u)
  [ ${#files[@]} -gt 0 ] || { echo "lint: nothing changed since ${BASE:-main}"; exit 0; }
elif [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(git ls-files '*.cc' '*.h' ':!cmake')
fi
if [ "$CHECKS" != "$analyzer" ]; then
  "${CLANG_FORMAT:-.venv/bin/clang-format}" --dry-run --Werror "${files[@]}"
fi
[ "$build" != --format ] || exit 0

checked=()
for file in "${files[@]}"; do
  case $file in
    *.cc) checked+=("$file") ;;
    # Given by name, a header needs sources that show it to clang-tidy.
    *.h) [ $# -eq 0 ] || mapfile -t -O ${#checked[@]} checked < <(
           git grep -lE "#include \"([a-z_/]*/)?${file##*/}\"" -- '*.cc' | head -n 3) ;;
  esac
done
# Only what this configuration compiles has flags to check it with.
[ ${#checked[@]} -eq 0 ] || python3 scripts/tidy.py "$build" "${checked[@]}"
