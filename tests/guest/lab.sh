#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/guest/lab.sh [-k KERNEL] [-m MODULE,...] [-t SECONDS] COMMAND...
# Boots a Debian kernel in QEMU, without a disk image: its root file system is an initramfs of bash, busybox,
# perf, busted and this source tree as it is built now, in /profscript. There it runs the bash COMMAND as root,
# prints its output (stdout and stderr) and returns its exit status.
#
#   -k  the end of a package's name, linux-image-KERNEL; default: cloud-amd64, the distribution's current kernel.
#       6.12-cloud-amd64 is a newer one, 6.1.0-56-cloud-amd64 an exact version, bullseye/cloud-amd64 that of
#       another release of Debian
#   -m  kernel modules that COMMAND can modprobe, with their dependencies
#   -n  a nested guest can be booted: the guest has QEMU, this kernel as /vmlinuz, and only one CPU
#   -s  a virtio-serial port, /dev/virtio-ports/org.profscript.0 in the guest: QEMU listens on this UNIX socket. The
#      guest is lab-PID, where PID is that of this script
#   -t  kill the guest after this time (100)
#
# Exit status 124: timeout; 125: the guest died (in both cases the end of its console is on stderr); 126: no guest
# can run here (stderr says why). Kernels are kept in build/guest/.
# LAB_SHARED: a folder for guests that see the same source tree. The first guest of a kernel boots, and its state is
# kept there; it and all others start from that state.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
CACHE=$TOP/build/guest
TIMED_OUT=124 DIED=125 UNAVAILABLE=126

kernel=cloud-amd64 modules='' nested='' serial='' limit=100
while getopts k:m:ns:t: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	m) modules=${OPTARG//,/ } ;;
	n) nested=1 ;;
	s) serial=$OPTARG ;;
	t) limit=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ -z "$serial" ] || modules+=' virtio_pci virtio_console'
release=
[[ $kernel != */* ]] || release=${kernel%%/*} kernel=${kernel#*/}
[ $# -gt 0 ] || { echo 'lab.sh: what shall the guest do?' >&2; exit 2; }

unavailable() {
	echo "no guest: $*" >&2
	exit $UNAVAILABLE
}

# Uses the package lists of another release, from the same mirrors, in addition to those of this system. They are
# downloaded once.
use_release() {
	local apt=$CACHE/apt/$1
	mkdir -p "$apt"/{lists,cache/archives}/partial
	cat >"$apt/conf" <<-END
		Dir::Etc::SourceList "$apt/list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::State::Lists "$apt/lists";
		Dir::Cache "$apt/cache";
		APT::Sandbox::User "root";
	END
	# shellcheck disable=SC2016 # the variables are apt-get's
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' \
		'Created-By: Packages' 'Origin: Debian' | sort -u >"$apt/here"
	[ -s "$apt/list" ] || sed "s: $(. /etc/os-release && echo "$VERSION_CODENAME"): $1:" "$apt/here" >"$apt/list"
	export APT_CONFIG=$apt/conf
	[ -n "$(find "$apt/lists" -name '*_Packages*')" ] || apt-get update -q=2
}

# A meta package depends on the current version.
version_of() {
	local version
	version=$(apt-cache depends "linux-image-$1" 2>/dev/null |
		sed -n 's/.*Depends: linux-image-\([0-9]\)/\1/p' | head -n 1)
	version=${version:-$1}
	[[ $version == *.*.* ]] && echo "$version"
}

# Unpacks the package into $CACHE/$version, without installing it.
unpack() {
	local new
	new=$(mktemp -d "$CACHE/new.XXXXXX")
	(cd "$new" && apt-get download -q=2 -o APT::Sandbox::User=root "linux-image-$version" &&
		dpkg-deb -x ./*.deb . && rm ./*.deb && depmod -b . "$version" &&
		mv -T "$new" "$CACHE/$version")
	rm -rf "$new"
	[ -d "$CACHE/$version" ]
}

fetch() {
	mkdir -p "$CACHE"
	exec {lock}>"$CACHE/lock" # guests may start in parallel
	flock "$lock"
	[ -z "$release" ] || use_release "$release"
	version=$(version_of "$kernel") && { [ -d "$CACHE/$version" ] || unpack; } && return
	# The package lists are missing, or so old that their version no longer exists.
	apt-get update -q=2 && version=$(version_of "$kernel") && unpack
}

# add FILE...: copies files to the same place in the guest
add() {
	cp -rL --parents -t "$root" "$@"
}

# Programs and Lua modules, with their shared libraries.
add_system() {
	local program files=() libraries
	for program in bash busybox busted chrt modprobe nice perf; do
		program=$(command -v $program) && files+=("$program")
	done
	[ -z "$nested" ] || files+=("$(command -v qemu-system-x86_64)" /usr/share/seabios/bios-microvm.bin
		/usr/share/qemu/{bios-microvm,linuxboot_dma}.bin)
	files+=(/usr/share/lua/5.1 /usr/share/luajit-2.1* /usr/lib/*/lua/5.1)
	# Loaded at run time.
	files+=(/usr/lib/*/lib{bpf.so.1,seccomp.so.2})
	mapfile -t libraries < <(ldd "${files[@]}" "$TOP/profscript" "$TOP"/build/workloads/* \
		/usr/lib/*/lua/5.1/*.so 2>/dev/null | sed -n 's:^\t[^/]*\(/[^ ]*\) .*:\1:p' | sort -u)
	add "${files[@]}" "${libraries[@]}"
}

add_modules() {
	local module from=$CACHE/$version files=()
	for module in $modules; do
		modprobe -d "$from" -S "$version" --show-depends "$module" ||
			unavailable "kernel $version has no module $module"
	done >"$tmp/modules"
	mapfile -t files < <(sed -n "s:^insmod $from/::p" "$tmp/modules" | cut -d ' ' -f 1 | sort -u)
	(cd "$from" && add "lib/modules/$version"/modules.* "${files[@]}")
}

# Makes the archive of a root file system without a command.
make_root() {
	mkdir -p "$root"/{usr/bin,usr/sbin,proc,sys,dev,tmp,etc,profscript}
	ln -s usr/bin usr/sbin "$root"
	add_system
	[ -z "$modules" ] || add_modules
	(cd "$TOP" && cp -r --parents -t "$root/profscript" profscript bindings scripts examples tests build/workloads)
	# BPF programs that tests compiled on the host.
	[ ! -d "$TOP/build/cache" ] || cp -r "$TOP/build/cache" "$root/profscript/build"
	cp "$TOP/tests/guest/init" "$root/init"
	[ -z "$nested" ] || cp "$CACHE/$version/boot/vmlinuz-$version" "$root/vmlinuz"
	echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
	(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$1.new" && mv "$1.new" "$1"
}

# One host thread for all virtual CPUs. With one thread each, the kernel sooner or later dies while it patches its
# own code, which enabling a tracepoint does. With more than one CPU, every second nested guest hangs. On a busy host
# the kernel's test of its timer may see too few interrupts, and it measures a wrong frequency of its TSC, which is the
# host's. Without what costs a fifth of the time if it is emulated: strings are copied by bytes (erms), each copy of user
# memory and each page walk take longer, and all memory is cleared twice.
# qemu SECONDS ARG...: the serial ports are the console, stdin and stdout of the command, and its exit status.
qemu() {
	local devices=() cpus=4 limit=$1 tsc
	shift
	tsc=$(dmesg 2>/dev/null | sed -n 's/.*tsc: .* \([0-9]*\)[.]\([0-9]*\) MHz.*/tsc_early_khz=\1\2/p' | tail -n 1)
	[ -z "$nested" ] || cpus=1
	[ -z "$serial" ] || devices=(-device virtio-serial -chardev "socket,id=port,path=$serial,server=on,wait=off"
		-device virtserialport,chardev=port,name=org.profscript.0)
	timeout --foreground -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot \
		-display none -name "guest=lab-$$,debug-threads=on" -machine q35,hpet=off,i8042=off \
		-accel tcg,thread=single -cpu max,erms=off,smap=off,smep=off,pku=off,la57=off -smp $cpus \
		-m 1G -kernel "$CACHE/$version/boot/vmlinuz-$version" -initrd "$archive" \
		-append 'console=ttyS0 loglevel=4 panic=-1 oops=panic nokaslr mitigations=off init_on_alloc=0 tsc=reliable no_timer_check'" $tsc" \
		-serial "file:$tmp/console" -chardev stdio,id=out,signal=off -serial chardev:out -serial "file:$tmp/status" \
		"${devices[@]}" "$@" 2>"$tmp/qemu"
}

# wait_ready PID: until the guest waits for its command; fails if QEMU ends before
wait_ready() {
	until grep -q ready "$tmp/status" 2>/dev/null; do
		kill -0 "$1" 2>/dev/null || return
		sleep 0.1
	done
}

# Boots a guest until it waits for its command, and writes its state to $1.
keep_state() {
	local monitor
	mkfifo "$tmp"/monitor.{in,out}
	qemu "$limit" -chardev pipe,id=monitor,path="$tmp/monitor" -mon monitor </dev/null &
	exec {monitor}<>"$tmp/monitor.in"
	wait_ready $! || return
	printf 'migrate "exec:cat >%s.new"\nquit\n' "$1" >&$monitor
	wait $!
	mv "$1.new" "$1"
}

# Boots a guest, or starts it from the state in which another one of this kernel waited for its command.
boot() {
	local from=() ready=(wait_ready $$)
	if [ -n "${LAB_SHARED-}" ] && [ -z "$serial" ]; then
		exec {lock}>"$archive.lock"
		flock "$lock"
		[ -e "$archive.state" ] || keep_state "$archive.state" || return
		exec {lock}>&-
		from=(-incoming "exec:cat '$archive.state'") ready=(true)
	fi
	# A port whose state is still to be restored loses what arrives: empty lines.
	qemu "$limit" "${from[@]}" < <("${ready[@]}" && printf '%64s' | tr ' ' '\n' && echo "command $(echo "$*" | base64 -w 0)")
}

for program in qemu-system-x86_64 busybox cpio modprobe apt-get; do
	command -v $program >/dev/null || unavailable "$program is not installed"
done
fetch >&2 || unavailable "apt-get cannot download linux-image-$kernel${release:+ of $release}"
exec {lock}>&-
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
archive=${LAB_SHARED:-$tmp}/$(echo "$version $modules $nested" | md5sum | cut -c 1-16)
exec {lock}>"$archive.lock"
flock "$lock"
[ -e "$archive" ] || make_root "$archive"
exec {lock}>&-
boot "$@"
status=$?
result=$(sed -n 's/^status //p' "$tmp/status")
[ -z "$result" ] || exit "$result"
# The stack without the guessed frames: these lines show the reason.
{ cat "$tmp/qemu" && grep -v '  ? ' "$tmp/console" | tail -n 40; } >&2
[ $status -eq $TIMED_OUT ] && exit $TIMED_OUT
exit $DIED
