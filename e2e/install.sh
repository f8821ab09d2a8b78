#!/usr/bin/env bash
# Installs what the browser tests drive: Debian's Chromium without windows, and the driver of
# playwright-go from npm, at the version that playwright-go asks for; and a
# sign-in provider. Nothing is downloaded but packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
version=1.52.0
playwright_sha512=976a2c4e02d748c7ae2d938c2fda98383510a0f3e752c2ac6f9fcfe8b2767bab8f29751d3cae56621378cf4dc6f9835b5a618363860435ab8dbb864a733ade1e
axe_version=4.14.1
axe_sha256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

if [ ! -x /usr/bin/chromium-headless-shell ]; then # each page of chromium also renders its own windows, which takes most of the time
	sudo=""
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends chromium-headless-shell fonts-dejavu-core >/dev/null
fi

if [ ! -e "$dir/.playwright-$version" ]; then
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	npm pack --silent "playwright-core@$version" >/dev/null
	echo "$playwright_sha512  playwright-core-$version.tgz" | sha512sum --check --quiet
	tar xzf "playwright-core-$version.tgz"
	ln -s "$(command -v node)" node
	npm pack --silent "axe-core@$axe_version" >/dev/null
	mkdir axe
	tar xzf "axe-core-$axe_version.tgz" -C axe --strip-components=1 package/axe.min.js
	echo "$axe_sha256  axe/axe.min.js" | sha256sum --check --quiet
	rm ./*.tgz
	touch ".playwright-$version"
fi

provider=$(sha256sum <"$here/provider/package-lock.json" | cut -c1-16)
if [ ! -e "$dir/.provider-$provider" ]; then
	rm -rf "$dir/provider" "$dir"/.provider-*
	mkdir -p "$dir/provider"
	cp "$here"/provider/package*.json "$dir/provider"
	(cd "$dir/provider" && npm ci --silent --ignore-scripts --no-audit --no-fund)
	touch "$dir/.provider-$provider"
fi
cp "$here/provider/server.mjs" "$dir/provider"
