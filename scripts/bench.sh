#!/usr/bin/env bash
# Measures stint beside the raw floor of this disk and beside other engines, and
# says which targets it meets. docs/performance.md explains the figures.
#
#   ROUNDS=3        rounds, which interleave all that is compared
#   FOR=5s          how long each run is measured
#   CONC="1 64 256" sessions at once; targets are at 64 and 256
#   ONLY=throughput nothing but the comparison; ONLY=alone: nothing but the rest
#   BENCH_OUT=FILE  the measurements and the verdicts as JSON lines (default bin/bench.jsonl)
#   BENCH_STRICT=1  exit with 1 if a target is missed
#
# The floor and the other engines are in ../shared/bench, which is copied and built
# unmodified; where it is missing, stint is measured alone. All of it happens in
# one temporary folder in bin/, so on one disk. With a quiet machine it takes ten
# minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
shared=$root/../shared/bench
rounds=${ROUNDS:-3} for=${FOR:-5s} conc=${CONC:-1 64 256} only=${ONLY:-}
out=${BENCH_OUT:-$root/bin/bench.jsonl}
case $out in /*) ;; *) out=$root/$out ;; esac

say() { printf 'bench: %s\n' "$*" >&2; }

mkdir -p "$root/bin"
work=$(mktemp -d "$root/bin/bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work/tmp CGO_ENABLED=0
mkdir "$TMPDIR"
: >"$out"

make --no-print-directory bin/stint
stint=$root/bin/stint

# build NAME FOLDER builds one harness; one that fails is told of and left out.
build() {
	say "building $1"
	if (cd "$work/src/$2" && GOFLAGS=-mod=mod "${GO:-go}" build -o "$work/bin/$1" . >"$work/$1.log" 2>&1); then
		return 0
	fi
	say "$1 does not build and is left out: $(tail -n 1 "$work/$1.log")"
	return 1
}

peers=()
floor=
if [[ $only == alone ]]; then
	:
elif [[ -d $shared ]]; then
	mkdir "$work/src" "$work/bin"
	cp -R "$shared/common" "$shared/proto" "$shared/dbos" "$shared/goworkflows" "$work/src/"
	chmod -R u+w "$work/src"
	if build proto proto; then floor=1; fi
	if build dbos-sqlite-full dbos; then peers+=(dbos-sqlite-full); fi
	if build goworkflows-sqlite goworkflows; then peers+=(goworkflows-sqlite); fi
else
	say "no ../shared/bench here: stint is measured alone, without the floor and other engines"
fi

load() { if [[ -r /proc/loadavg ]]; then cut -d' ' -f1 /proc/loadavg; else echo 0; fi; }

# limit runs a command, but not for ever.
limit() { if command -v timeout >/dev/null 2>&1; then timeout 600 "$@"; else "$@"; fi; }

# record WHO ROUND COMMAND... runs a command that prints JSON objects, or one list
# of them, and adds them to the output.
record() {
	local who=$1 round=$2
	shift 2
	local before status=0
	before=$(load)
	limit "$@" >"$work/said" 2>"$work/talk" || status=$?
	if [[ $status != 0 ]] || ! grep -q '^[[{]' "$work/said"; then
		say "$who failed (exit status $status): $(tail -n 1 "$work/talk")"
		return 0
	fi
	grep '^[[{]' "$work/said" | sed -e 's/^\[//' -e 's/\]$//' -e 's/},{/}\
{/g' | sed -e "s/^{/{\"who\":\"$who\",\"round\":$round,\"load\":$before,/" >>"$out"
}

# peer WHO CONC are the arguments of a harness.
peer() {
	rm -rf "$work/data"
	case $1 in
	floor) set -- proto "$2" -store zombiezen -contract 2 ;;
	dbos-sqlite-full) set -- "$1" "$2" -db sqlite -sync FULL ;;
	*) set -- "$1" "$2" ;;
	esac
	args=("$work/bin/$1" "${@:3}" -cmd throughput -conc "$2" -d "$for" -dir "$work/data")
}

printf '{"date":"%s","system":"%s","cores":%s,"version":"%s"}\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(uname -srm)" "$(getconf _NPROCESSORS_ONLN)" \
	"$("$stint" version | cut -d' ' -f2)" >>"$out"

for round in $(seq "$rounds"); do
	for c in $([[ $only == alone ]] || echo "$conc"); do
		say "round $round of $rounds, $c sessions (load average $(load))"
		if [[ -n $floor ]]; then
			peer floor "$c"
			record floor "$round" "${args[@]}"
		fi
		record stint "$round" "$stint" bench --json --concurrency "$c" --for "$for"
		record stint-once "$round" "$stint" bench --json --concurrency "$c" --for "$for" --effect once
		for p in ${peers[@]+"${peers[@]}"}; do
			peer "$p" "$c"
			record "$p" "$round" "${args[@]}"
		done
	done
	say "round $round of $rounds, one step (load average $(load))"
	record latency "$round" "$stint" bench latency --json --for "$for"
done

if [[ $only != throughput ]]; then
	for n in 1000 10000; do
		say "recovery of $n sessions (load average $(load))"
		record recover 1 "$stint" bench recover --json -n $n
	done
	say "10000 waiting sessions (load average $(load))"
	record waiters 1 "$stint" bench waiters --json -n 10000
	say "cold start and growth (load average $(load))"
	record cold 1 "$stint" bench cold --json
	record growth 1 "$stint" bench growth --json
	record growth 1 "$stint" bench growth --json --loops 20,200,2000 --grow 256
fi

"$stint" bench report <"$out"
"$stint" bench report --json <"$out" >"$work/verdicts"
cat "$work/verdicts" >>"$out"
say "all of it is in $out"
if [[ ${BENCH_STRICT:-} == 1 ]] && grep -q '"pass":false' "$work/verdicts"; then
	exit 1
fi
