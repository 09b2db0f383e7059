#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The manual pages are well formed.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1

for page in '' trace expr list; do
	"$PROFSCRIPT" man $page >page.1
	check "man $page" test -s page.1
	if command -v groff >/dev/null; then
		groff -Tutf8 -man -ww page.1 2>&1 >/dev/null | tee warnings >/dev/null
		check "man $page: no complaints by groff" test ! -s warnings
	else
		skip "man $page: no complaints by groff" 'groff is not installed'
	fi
done
check 'make man' make -s -C "$TOP" man
check 'a page of each profiler' test -s "$TOP/build/share/man/man1/profscript-bpf-kvm_exit.1"
