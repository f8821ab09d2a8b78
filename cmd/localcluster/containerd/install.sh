#!/usr/bin/env bash
# Installs what a real node needs besides the programs that are built: runc, the CNI
# plugins, and iptables for kube-proxy. No service starts.
set -euo pipefail

missing=""
[ -n "$(command -v runc)" ] || missing="$missing runc"
[ -x /usr/lib/cni/bridge ] || missing="$missing containernetworking-plugins"
[ -n "$(PATH=$PATH:/usr/sbin command -v iptables)" ] || missing="$missing iptables"
[ -n "$(PATH=$PATH:/usr/sbin command -v ip)" ] || missing="$missing iproute2"
if [ -n "$missing" ]; then
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing >/dev/null
fi
