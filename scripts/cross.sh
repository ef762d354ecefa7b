#!/usr/bin/env bash
# Builds stint for the platforms that are not this one, and type-checks all
# packages and their tests there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0
for platform in linux/arm64 darwin/arm64 windows/amd64; do
	export GOOS=${platform%/*} GOARCH=${platform#*/}
	out=dist/stint-$GOOS-$GOARCH
	[[ $GOOS != windows ]] || out=$out.exe
	"${GO:-go}" build -trimpath -ldflags "-s -w -X main.version=${VERSION:-dev}" -o "$out" ./cmd/stint
	"${GO:-go}" vet ./...
	echo "cross: $out; all packages and tests compile for $platform"
done
