#!/usr/bin/env bash
# Unpacks Debian's Prometheus into a folder, once, for the local cluster and for tests.
# It is not installed: no account is made, no service starts, and nothing needs root.
set -euo pipefail
dir=$1
[ ! -x "$dir/usr/bin/prometheus" ] || exit 0
mkdir -p "$(dirname "$dir")"
unpacked=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$unpacked"' EXIT
cd "$unpacked"
# A user who is not root updates lists of their own where the system's are missing or old.
own="-o Dir::State::lists=$unpacked/lists -o Dir::Cache=$unpacked/cache -o APT::Sandbox::User="
mkdir -p lists/partial cache/archives/partial
apt-get download -q prometheus >/dev/null 2>&1 || { apt-get $own update -q >/dev/null; apt-get $own download -q prometheus >/dev/null; }
dpkg-deb -x prometheus_*.deb root
[ ! -x "$dir/usr/bin/prometheus" ] || exit 0
rm -rf "$dir"
mv root "$dir"
