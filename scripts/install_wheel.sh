#!/usr/bin/env bash
# install_wheel.sh PYTHON BUILD: make the wheel from an already built folder and install it, when anything changed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
build=$2
state=$( (find python/epona pyproject.toml README.md -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum
          sha256sum "$build"/python/epona/_epona*.so "$build"/bin/epona) 2>/dev/null | sha256sum)
if [ -e "$build/.installed" ] && [ "$(cat "$build/.installed")" = "$state" ] && "$python" -m pip --version >/dev/null &&
  [ -e "$(dirname "$python")/epona" ]; then
  exit 0
fi
rm -rf dist
"$python" -m pip wheel . --quiet --disable-pip-version-check --no-build-isolation --no-deps -w dist \
  -C build-dir="$build" -C cmake.define.Python_EXECUTABLE="$python" \
  -C cmake.define.EPONA_TESTS=ON -C cmake.define.EPONA_DEPS_PREFIX="$EPONA_DEPS_PREFIX"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/epona-*.whl
echo "$state" >"$build/.installed"
echo "installed $(basename dist/epona-*.whl) ($(du -k dist/epona-*.whl | cut -f1) kB) into .venv"
