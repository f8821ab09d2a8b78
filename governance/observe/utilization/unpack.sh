#!/usr/bin/env bash
# Unpacks Debian's Prometheus into a folder, for the tests to start. It is not
# installed: no account is made, and no service starts.
set -euo pipefail
dir=$1
[ ! -x "$dir/usr/bin/prometheus" ] || exit 0
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
chmod 755 "$unpacked"
cd "$unpacked"
apt-cache show prometheus >/dev/null 2>&1 || $sudo apt-get update -q >/dev/null
apt-get download -q prometheus >/dev/null 2>&1 || { $sudo apt-get update -q >/dev/null; apt-get download -q prometheus >/dev/null; }
dpkg-deb -x prometheus_*.deb unpacked
mkdir -p "$dir"
cp -a unpacked/. "$dir"
