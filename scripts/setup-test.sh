#!/usr/bin/env bash
# Installs what the tests need on a Debian machine that has Go, git and make.
# It does nothing, and asks nobody, when everything is there.
set -euo pipefail

# mkfs lives where an ordinary user's PATH does not look.
export PATH="$PATH:/usr/sbin:/sbin"

has() { command -v "$1" >/dev/null 2>&1; }

# A compiler without the C library's headers cannot build the race detector's
# glue; Debian ships them apart.
can_compile() {
	local cc=${CC:-}
	[[ -n "$cc" ]] || { has gcc && cc=gcc; } || { has cc && cc=cc; } || return 1
	echo '#include <stdlib.h>' | $cc -E -x c - >/dev/null 2>&1
}

missing=()
look() {
	missing=()
	can_compile || missing+=(gcc libc6-dev)         # go test -race needs cgo
	python3 -c 'import unittest' >/dev/null 2>&1 || missing+=(python3) # the Python SDK's tests
	has node || missing+=(nodejs)                   # servers of tools that others wrote;
	has npm || missing+=(npm)                       # their tests install pinned versions into the user's cache
	if [[ "$(uname -s)" == Linux ]]; then
		has strace || missing+=(strace)         # which writes reach the disk, in which order
		if [[ "$(id -u)" == 0 ]]; then          # file systems of their own, for the root rigs
			has mkfs.ext4 || missing+=(e2fsprogs)
			has mkfs.xfs || missing+=(xfsprogs)
		fi
	fi
}

fail() {
	echo "setup-test: the tests need the package(s) ${missing[*]}: $1" >&2
	exit 1
}

# A disk that runs full in the middle looks like a fault of whatever was writing then.
room() { # what is there in MiB, at a path or what will hold it
	local at=$1
	while [[ ! -e "$at" ]]; do at=$(dirname "$at"); done
	df -Pm "$at" | awk 'NR == 2 { print $4 }'
}
cache=$("${GO:-go}" env GOCACHE)
for at in "${TMPDIR:-/tmp}" "$cache"; do
	free=$(room "$at")
	if ((free < 6000)); then
		echo "setup-test: $at has $free MiB free; from an empty cache the tests take 6000, and 3000 at least." >&2
		echo "setup-test: free some (go clean -cache), or set TMPDIR and GOCACHE to a larger disk" >&2
	fi
	((free >= 3000)) || exit 1
done

look
if [[ ${#missing[@]} == 0 ]]; then
	exit 0
fi

has apt-get || fail "there is no apt-get here; install what provides them and run this again"
as_root=()
if [[ "$(id -u)" != 0 ]]; then
	has sudo || fail "neither root nor sudo; have somebody run: apt-get install ${missing[*]}"
	as_root=(sudo)
	# Without a terminal nobody can answer a password prompt.
	[[ -t 0 && -z "${CI:-}" ]] || as_root=(sudo -n)
fi
apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get \
		-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}

echo "setup-test: installing ${missing[*]}"
# One broken source among several is no reason to stop; what is really out of
# reach fails below, by name.
apt update -qq || echo "setup-test: apt-get update failed, see above; trying with the lists there are" >&2
for package in "${missing[@]}"; do
	if ! apt install -y -qq --no-install-recommends "$package"; then
		missing=("$package")
		fail "apt-get could not install it, see above"
	fi
done
look
if [[ ${#missing[@]} != 0 ]]; then
	fail "apt-get installed them, and what they provide is still not on PATH"
fi
