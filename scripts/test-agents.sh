#!/usr/bin/env bash
# Runs the tests of agent/cli and agent/acp that drive real agent CLIs, against a model
# that plays a script on the loopback. Nothing is asked of a provider.
#
#   AGENTS=codex,opencode,gemini,codex-acp  which CLIs
#   STINT_AGENTS_DIR=FOLDER       where they are, or are installed by npm
#                                 (default ${XDG_CACHE_HOME:-~/.cache}/stint-agents)
#   RUN=TestReal                  which tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export AGENTS=${AGENTS:-codex,opencode,gemini,codex-acp}
export STINT_AGENTS_DIR=${STINT_AGENTS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/stint-agents}

say() { printf 'test-agents: %s\n' "$*" >&2; }
fail() {
	say "$*"
	exit 1
}

# package NAME prints what npm installs for a CLI.
package() {
	case $1 in
	codex) echo @openai/codex@0.169.0 ;;
	opencode) echo opencode-ai@1.18.33 ;;
	gemini) echo @google/gemini-cli@0.61.0 ;;
	codex-acp) echo @zed-industries/codex-acp@0.16.0 ;;
	*) return 1 ;;
	esac
}

IFS=', ' read -r -a names <<<"$AGENTS"
[[ ${#names[@]} -gt 0 ]] || fail "AGENTS names no CLI; there are codex, opencode, gemini and codex-acp"
for name in "${names[@]}"; do
	want=$(package "$name") || fail "there is no CLI $name here; there are codex, opencode, gemini and codex-acp"
	dir=$STINT_AGENTS_DIR/$name
	if [[ -x $dir/node_modules/.bin/$name && $(cat "$dir/installed" 2>/dev/null) == "$want" ]]; then
		continue
	fi
	command -v npm >/dev/null || fail "$name is not installed in $dir, and there is no npm to install it with"
	say "installing $want in $dir"
	mkdir -p "$dir"
	if ! npm install --prefix "$dir" --save-exact --no-audit --no-fund "$want" >"$dir/install.log" 2>&1; then
		tail -n 5 "$dir/install.log" >&2
		fail "npm could not install $want; the whole log is $dir/install.log"
	fi
	[[ -x $dir/node_modules/.bin/$name ]] || fail "$want has no program $name; see $dir/install.log"
	echo "$want" >"$dir/installed"
done

# tested PACKAGE NAME... runs the tests of a package with those of its agents that are asked for.
tested() {
	local package=$1 name run=
	shift
	for name in "$@"; do
		[[ " ${names[*]} " == *" $name "* ]] && run+="${run:+,}$name"
	done
	[[ -z "$run" ]] && return
	AGENTS=$run "${GO:-go}" test -tags agents -count 1 -timeout 30m -run "${RUN:-TestReal}" "$package" -v
}
tested ./agent/cli codex opencode gemini
tested ./agent/acp opencode gemini codex-acp
