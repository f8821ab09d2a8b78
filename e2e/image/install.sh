#!/usr/bin/env bash
# Installs what the image test needs, and makes the base image of the Dockerfile
# in a storage of its own below a folder: Debian from its mirror with the Go
# toolchain that the tag names. No registry is used.
set -euo pipefail
dir=$1
dockerfile=$(dirname "$0")/../../Dockerfile

if [ "$(id -u)" != 0 ]; then
	echo "e2e/image: building and running an image needs root; the test will be skipped"
	exit 0
fi
missing=""
for package in buildah debootstrap runc; do
	[ -n "$(command -v "$package")" ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
	apt-get update -q >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null
fi

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
export CONTAINERS_STORAGE_CONF=$dir/storage.conf
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$dir" "$dir" >"$CONTAINERS_STORAGE_CONF"

name=$(sed -n 's/^FROM --platform=$BUILDPLATFORM \(golang:[^ @]*\).* AS build$/\1/p' "$dockerfile")
version=$(sed -n 's/^golang:\([0-9.]*\)-bookworm$/\1/p' <<<"$name")
[ -n "$version" ] || { echo "e2e/image: the Dockerfile builds from \"$name\"; expected golang:VERSION-bookworm" >&2; exit 1; }
tag=docker.io/library/$name
if buildah inspect --type image "$tag" >/dev/null 2>&1; then
	exit 0
fi

root=$dir/base
rm -rf "$root"
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" >"$dir/debootstrap.log" || { tail "$dir/debootstrap.log" >&2; exit 1; }
# The CA of a proxy, if this machine has one.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
cp -a "$(GOTOOLCHAIN=go$version go env GOROOT)" "$root/usr/local/go"
container=$(buildah from scratch)
buildah copy --quiet "$container" "$root" / >/dev/null
buildah config --env PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local "$container"
buildah commit --quiet --rm "$container" "$tag" >/dev/null
echo "e2e/image: made $tag"
