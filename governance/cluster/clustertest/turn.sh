#!/usr/bin/env bash
# Runs a test binary for go test -exec, in its turn: a few packages at a time share
# the machine's cores, but those whose limits are of seconds have it for themselves.
set -euo pipefail
lock=${TMPDIR:-/tmp}/kuota-tests-$(id -u).lock
case $1 in
*/behavior.test | */tasks.test | */recorder.test) how=--exclusive ;;
*) how=--shared ;;
esac
exec flock --close $how "$lock" "$@"
