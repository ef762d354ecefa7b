#!/usr/bin/env bash
# A real session on real input: an agent digests the Go packages of this
# repository, one a loop; stint is killed in the middle, and the session goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

make --no-print-directory bin/stint
CGO_ENABLED=0 go build -trimpath -o bin/repo-digest ./examples/repo-digest

demo=$root/.demo
rm -rf "$demo"
mkdir -p "$demo"
cd "$demo"
cat >stint.yaml <<YAML
agents:
  digest:
    description: Digests the Go packages of a repository, one a loop
    kind: exec
    command: [$root/bin/repo-digest]
    env: {STINT_DIGEST_ROOT: $root, STINT_DIGEST_FILE: $demo/digest.jsonl, STINT_DIGEST_PAUSE: 80ms}
    limits: {loops: 1000}   # a package a loop
YAML
unset STINT_STORE
export PATH=$root/bin:$PATH

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say '$ stint run digest          (killed with kill -9 in the middle of a loop)'
: >digest.jsonl
stint run digest &
pid=$!
until [ "$(wc -l <digest.jsonl)" -ge 3 ]; do sleep 0.05; done
sleep 0.2
kill -9 "$pid"
wait "$pid" 2>/dev/null || true

say '$ stint ps                  (nothing says that it runs)'
stint ps

say '$ stint resume @last --run  (the open loop begins again, its finished steps are answered)'
stint resume @last --run

say '$ stint show @last'
stint show @last

say '$ stint verify @last'
stint verify @last

packages=$(wc -l <digest.jsonl)
twice=$(cut -d'"' -f8 digest.jsonl | sort | uniq -d | wc -l)
say "What is left: $packages packages in .demo/digest.jsonl, $twice of them twice."
[ "$twice" = 0 ]
cat <<'TXT'

Try next, in the folder .demo with ../bin in the PATH:
  stint logs @last                     everything that happened, in order
  stint show @last --state 3           the state at the end of loop 3
  stint restart @last --from 3 --dry-run
  stint sql "select name, status, loops, steps from v_sessions"
  stint run -- sh -c 'echo any command is a session; exit 3'
TXT
