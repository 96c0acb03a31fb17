#!/bin/sh
# C++ sources are as clang-format 14 (Debian 12's) leaves them; other versions differ in details, so they are not asked.
# Usage: check_format.sh [--fix]
set -eu
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
  echo "clang-format 14 is not here: tools/setup.sh installs it." >&2
  exit 1
fi
files=$(git ls-files --cached --others --exclude-standard 'src/*.cc' 'src/*.h' 'src/*.cu' 'src/*.cuh')
if [ "${1:-}" = --fix ]; then
  echo "$files" | xargs "$tool" -i
elif ! echo "$files" | xargs "$tool" --dry-run --Werror 2>/tmp/ridge_format.$$; then
  grep -o '^[^:]*:[0-9]*' "/tmp/ridge_format.$$" | cut -d: -f1 | sort | uniq -c | sort -rn
  rm -f "/tmp/ridge_format.$$"
  echo "These files (places to change) are not formatted: make format." >&2
  exit 1
else
  rm -f "/tmp/ridge_format.$$"
  echo "format: $(echo "$files" | wc -l) files are as clang-format leaves them"
fi
