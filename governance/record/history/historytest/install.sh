#!/usr/bin/env bash
# Installs Debian's PostgreSQL server for tests, which start their own. The package
# creates and runs no database cluster.
set -euo pipefail

if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends postgresql-common >/dev/null
	$sudo sed -i -E 's/^#? *create_main_cluster *=.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends postgresql >/dev/null
fi
