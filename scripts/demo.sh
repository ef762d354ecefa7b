#!/usr/bin/env bash
# Shows stint at work on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

make --no-print-directory bin/stint
bin/stint version
