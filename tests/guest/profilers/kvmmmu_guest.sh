#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kvmmmu on the page tables of a nested virtual machine, whose number perf also counts.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
{ modprobe kvm_amd || modprobe kvm_intel; } 2>"$TMP/err"
[ -e /dev/kvm ] || skip_all 'no KVM: the CPU of the guest has no SVM or VMX'

perf stat -a -x , -o "$TMP/perf" -e kvmmmu:kvm_mmu_get_page,kvmmmu:kvm_mmu_prepare_zap_page,kvmmmu:kvm_mmu_set_spte \
	./profscript kvmmmu --spte --detail --format csv -- build/workloads/vmexits 20 >"$TMP/out" 2>"$TMP/err"
result $? 'a workload that is a virtual machine' "$TMP/err"
# sum COLUMN: over the table of levels
sum() {
	awk -F , -v column="$1" '$1 == "table" { split("", at); for (i = 1; i <= NF; i++) at[$i] = i }
		$1 == "kvmmmu" { sum += $at[column] } END { print sum + 0 }' "$TMP/out"
}
for pair in get_page=kvm_mmu_get_page zap_page=kvm_mmu_prepare_zap_page set_spte=kvm_mmu_set_spte; do
	counted=$(sed -n "s/^\([0-9]*\),.*${pair#*=},.*/\1/p" "$TMP/perf")
	check "${pair%=*} is what perf counts: $counted" test "$(sum "${pair%=*}")" = "$counted" -a "$counted" -gt 0
done
check 'LIVE counts tables that were created and not zapped' test "$(sum live)" = $(($(sum created) - $(sum zap_page)))
check '--detail lists as many pages' test "$(grep -c '^kvmmmu-pages,' "$TMP/out")" = "$(sum live)"
expect_line 'a table of level 1' '^kvmmmu,[0-9.]+,0,1,1,1,' "$TMP/out"
./profscript kvmmmu --event kvm:kvm_exit -- build/workloads/vmexits 20 >"$TMP/out" 2>"$TMP/err"
check '--event prints events' test "$(grep -c 'kvm:kvm_exit: ' "$TMP/out")" -ge 20
