#!/usr/bin/env bash
# Makes the base image of the training, once: Debian with its PyTorch, in the storage
# that e2e/image/install.sh sets up in a folder. Debian 13, because torchrun of Debian 12
# does not work with its Python.
set -euo pipefail
dir=$1
tag=localhost/kuota-torch:trixie

[ "$(id -u)" = 0 ] || exit 0 # the test will be skipped
dir=$(cd "$dir" && pwd)
export CONTAINERS_STORAGE_CONF=$dir/storage.conf
if buildah inspect --type image "$tag" >/dev/null 2>&1; then
	exit 0
fi

root=$dir/torch
rm -rf "$root"
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates trixie "$root" >"$dir/debootstrap-torch.log" || { tail "$dir/debootstrap-torch.log" >&2; exit 1; }
# The CA of a proxy, if this machine has one.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
{
	chroot "$root" apt-get update -q
	chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3-torch
} >"$dir/apt-torch.log" 2>&1 || { tail "$dir/apt-torch.log" >&2; exit 1; }
# Debian builds PyTorch 2.6 without libuv, which torchrun uses unless it is told not to.
(cd "$root"/usr/lib/python3/dist-packages/torch/distributed
	sed -i 's/^\( *\)multi_tenant=True,$/&\n\1use_libuv=False,/' elastic/rendezvous/{c10d_rendezvous_backend,dynamic_rendezvous}.py
	sed -i 's/^\( *\)is_master=False,$/&\n\1use_libuv=False,/' rendezvous.py)
rm -rf "$root"/usr/share/{doc,locale,man} "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
container=$(buildah from scratch)
buildah copy --quiet "$container" "$root" / >/dev/null
buildah config --env PATH=/usr/sbin:/usr/bin:/sbin:/bin --env USE_LIBUV=0 --env PYTHONUNBUFFERED=1 "$container"
buildah commit --quiet --rm "$container" "$tag" >/dev/null
echo "e2e/elastic/training: made $tag"
