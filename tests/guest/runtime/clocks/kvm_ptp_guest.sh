#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A nested Linux guest sends its events through two ports. One receiver knows its clock by KVM's TSC offset in debugfs,
# the other one, without debugfs, by KVM's PTP clock: both must convert the times alike.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1
modprobe kvm_amd 2>"$TMP/err"
[ -e /dev/kvm ] || skip_all 'no KVM: the CPU of the guest has no SVM'
mount -t debugfs none /sys/kernel/debug
EVENTS=150

# add FILE...: copies files to the same place in the nested guest
add() {
	local file
	for file; do
		mkdir -p "$TMP/root/$(dirname "$file")"
		cp -rL "$file" "$TMP/root/$file"
	done
}

mkdir -p "$TMP"/root/{proc,sys,dev,tmp}
mapfile -t libraries < <(LD_TRACE_LOADED_OBJECTS=1 ./profscript | sed -n 's:^\t[^/]*\(/[^ ]*\) .*:\1:p')
mapfile -t modules < <(for module in virtio_mmio virtio_console ptp_kvm; do modprobe --show-depends $module; done |
	sed -n 's:^insmod \([^ ]*\).*:\1:p' | awk '!seen[$0]++')
add /bin/busybox "$PWD/profscript" "$PWD/bindings" "$PWD/scripts" "${libraries[@]}" "${modules[@]}"
cat >"$TMP/root/init" <<-END
	#!/bin/busybox sh
	/bin/busybox --install -s /bin
	export PATH=/bin
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs devtmpfs /dev
	mount -t tracefs tracefs /sys/kernel/tracing
	cd $PWD
	./profscript trace -e timer:hrtimer_expire_entry --push /tmp/x.data -N 1 -v
	for module in ${modules[*]}; do insmod \$module; done
	until [ -c /dev/vport0p2 ]; do usleep 100000; done
	./profscript trace -e timer:hrtimer_expire_entry --push /dev/vport0p1,/dev/vport0p2 -v &
	while read -r command; do eval "\$command"; done
END
chmod +x "$TMP/root/init"
(cd "$TMP/root" && find . | busybox cpio -o -H newc) >"$TMP/initramfs" 2>"$TMP/err"

coproc NESTED {
	qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none -name guest=nested,debug-threads=on \
		-M microvm,pit=off,pic=off,isa-serial=on -accel kvm -cpu host -m 256M \
		-kernel /vmlinuz -initrd "$TMP/initramfs" -append 'console=ttyS0 quiet panic=-1' -serial stdio \
		-device virtio-serial-device -chardev "socket,id=a,path=$TMP/a,server=on,wait=off" \
		-chardev "socket,id=b,path=$TMP/b,server=on,wait=off" -device virtserialport,chardev=a,name=a \
		-device virtserialport,chardev=b,name=b 2>&1
}

# says REGEX: waits until the nested guest prints such a line. It needs the CPU, so nothing here may poll.
says() {
	local line
	while read -r -t 100 line <&"${NESTED[0]}"; do
		echo "$line" >>"$TMP/console"
		[[ ! $line =~ $1 ]] || return 0
	done
	return 1
}

# receive NAME COMMAND: COMMAND sets a wall clock in the middle; the times of both receivers go to $TMP/NAME
receive() {
	local a b events=(--csv -v -N $EVENTS)
	./profscript trace -e "timer:hrtimer_expire_entry//pull=\"unix:$TMP/a\"/vm=nested/" "${events[@]}" >"$TMP/a.out" 2>"$TMP/a.err" &
	a=$!
	unshare -m sh -c 'umount /sys/kernel/debug; exec "$@"' - \
		./profscript trace -e "timer:hrtimer_expire_entry//pull=\"unix:$TMP/b\"/vm=nested/" "${events[@]}" >"$TMP/b.out" 2>"$TMP/b.err" &
	b=$!
	# shellcheck disable=SC2317 # wait_for calls it
	has_half() { sleep 1 && [ "$(wc -l <"$TMP/b.out")" -gt $((EVENTS / 2)) ]; }
	wait_for 60 has_half
	$2
	wait $a $b
	# Which event it was.
	awk -F, '$1 == "event" { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ event = $at["now"] " " $at["hrtimer"]; time = $at["clock"] }
		NR == FNR { times[event] = time; next }
		event in times { printf "%.0f\n", (time - times[event]) * 1e9 }' "$TMP/a.out" "$TMP/b.out" >"$TMP/$1"
}

error_of() { sed -n 's/.* are right to within \([0-9]*\) ns (by .*/\1/p' "$TMP/$1.err"; }

# alike NAME: the times of both receivers
alike() {
	local errors
	errors=$(($(error_of a) + $(error_of b)))
	cat "$TMP"/[ab].err "$TMP/console" >"$TMP/why"
	expect_line "$1: debugfs tells the TSC offset" "times of .* right to within .* ns .by KVM.s TSC offset." "$TMP/a.err"
	expect_line "$1: without debugfs, the PTP clock" "times of .* right to within .* ns .by KVM.s PTP clock." "$TMP/b.err"
	awk '{ print $1 < 0 ? -$1 : $1 }' "$TMP/$1" | sort -n >"$TMP/sorted"
	awk -v name="$1" -v a="$(error_of a)" -v b="$(error_of b)" '{ off[NR] = $1 }
		END { print "# " name ": " NR " events, off by " off[int(NR / 2) + 1] " ns (median), " \
			off[int(NR * .95) + 1] " (95 %), " off[NR] " (all); stated: " a " + " b }' "$TMP/sorted"
	awk -v errors=$errors '{ off[NR] = $1 }
		END { exit NR < 50 || off[int(NR / 2) + 1] > errors || off[NR] > 5e8 }' "$TMP/sorted"
	result $? "$1: the times agree within the stated errors" "$TMP/why"
}

says "^push: KVM's PTP clock is missing: modprobe ptp_kvm"
result $? 'the guest says that it has no PTP clock' "$TMP/console"
says '^push /tmp/x.data: [1-9][0-9]* events'
result $? 'it has events' "$TMP/console"
source=/sys/devices/system/clocksource/clocksource0/current_clocksource
echo "cat $source" >&"${NESTED[1]}"
says '^kvm-clock'
result $? 'its clock source is that of the PTP clock' "$TMP/console"
receive exact "date -s @$(($(date +%s) + 1000))"
alike exact
echo "echo tsc >$source; cat $source" >&"${NESTED[1]}"
says '^tsc'
result $? 'its clock source is another one' "$TMP/console"
# shellcheck disable=SC2317 # receive calls it
set_clock() { echo 'date -s @1700000000' >&"${NESTED[1]}"; }
receive bracketed set_clock
alike bracketed
