#!/usr/bin/env bash
# Runs each fuzz target of the module for FUZZTIME, one after the other. The
# go command fuzzes one target at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=0
while IFS=: read -r file name; do
	echo "fuzz: $name in $(dirname "$file")"
	"${GO:-go}" test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-5s}" "./$(dirname "$file")" </dev/null
	count=$((count + 1))
done < <(git ls-files --cached --others --exclude-standard '*_test.go' |
	xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func /:/')

if [[ $count == 0 ]]; then
	echo "fuzz: no fuzz target found" >&2
	exit 1
fi
echo "fuzz: $count targets, ${FUZZTIME:-5s} each"
