#!/usr/bin/env bash
# Lints the module with the best that is installed, and says what that was.
# internal/arch, a test, holds the rules that are this project's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if command -v golangci-lint >/dev/null 2>&1; then
	golangci-lint run ./...
	echo "lint: golangci-lint $(golangci-lint version --short) found nothing"
	exit 0
fi

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -s -l)
if [[ -n "$unformatted" ]]; then
	printf 'lint: not formatted, run make fmt:\n%s\n' "$unformatted" >&2
	exit 1
fi
"${GO:-go}" vet ./...
echo "lint: gofmt and go vet found nothing; golangci-lint is not installed, so its linters did not run"
