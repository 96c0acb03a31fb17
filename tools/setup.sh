#!/bin/sh
# Installs the Debian packages that Ridgeline is built and tested with; does nothing, quickly, when all are there.
# Usage: tools/setup.sh [--all]     --all adds clang 19 for the clang preset and the fuzz targets.
set -eu

packages="build-essential cmake ninja-build ccache pkg-config
  rapidjson-dev libcli11-dev libfmt-dev libspdlog-dev libpcre2-dev libutf8proc-dev libedit-dev
  libgtest-dev libgmock-dev
  python3 python3-pip python3-jinja2 ca-certificates git clang-format"
case "${1:-}" in
  "") ;;
  --all) packages="$packages clang-19 libclang-rt-19-dev" ;;
  *) echo "usage: tools/setup.sh [--all]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian system: install the equivalents of these packages yourself:" $packages >&2
  exit 1
fi
missing=
for package in $packages; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing:$missing" >&2
sudo=
if [ "$(id -u)" != 0 ]; then
  sudo=$(command -v sudo) || { echo "Root rights are needed: run as root: apt-get install$missing" >&2; exit 1; }
fi
export DEBIAN_FRONTEND=noninteractive
install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2; }
# The package lists may be old or empty: fetch them and try once more.
install 2>/dev/null || { $sudo apt-get update -qq >&2 && install; } ||
  { echo "apt-get could not install$missing: see its message above, check the network, run tools/setup.sh again." >&2; exit 1; }
