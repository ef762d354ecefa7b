#!/usr/bin/env bash
# Runs every test: the Python SDK first, the Go module last, so that the go
# command's summary stands at the end of the output.
#
#   STINT_LONG=1   rigs at full size instead of a tenth
#
# As root it runs the rigs that mount file systems or write cgroups too, by
# setting STINT_ROOT_RIGS=1; for anybody else it ends by naming them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup-test.sh
# mkfs and losetup live where an ordinary user's PATH does not look.
export PATH="$PATH:/usr/sbin:/sbin"

timeout=20m
if [[ "${STINT_LONG:-}" == 1 ]]; then
	timeout=60m
fi
if [[ "$(id -u)" == 0 && "$(uname -s)" == Linux ]]; then
	export STINT_ROOT_RIGS=1
fi

if [[ -d sdk/python/tests ]]; then
	echo "python3 -m unittest discover (sdk/python)"
	PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -s sdk/python/tests -t sdk/python
fi

# A program with the race detector sleeps for a second as it exits, and the tests start
# thousands of themselves. What has been found is printed without that.
export GORACE="atexit_sleep_ms=0 ${GORACE:-}"
# The detector ignores memory that is not Go's, and SQLite's is not: it is C that was
# translated. Its locks are of package sync, which the detector sees as ever.
plain=(-gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/memory=-race=false)
# Most packages wait for processes and for the disk: one more than there are processors.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))

status=0
CGO_ENABLED=1 "${GO:-go}" test -race "${plain[@]}" -p "$packages" -timeout "$timeout" ./... || status=$?

if [[ "${STINT_ROOT_RIGS:-}" != 1 ]]; then
	cat >&2 <<-'END'

	==================================================================
	 NOT RUN: the root rigs (file systems that fill up or lose power,
	 cgroups, mounts). Run `sudo -E make test` on Linux to include them.
	==================================================================
	END
fi
exit "$status"
