#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/guest/lab.sh [-k KERNEL] [-m MODULE,...] [-t SECONDS] COMMAND...
# Boots a Debian kernel in QEMU, without a disk image: its root file system is an initramfs of bash,
# busybox, perf, busted, and this source tree as it is built now, in /profscript. There it runs the
# bash COMMAND as root, and returns what that printed (stdout and stderr) and its exit status.
#
#   -k  the end of a package's name, linux-image-KERNEL; default: cloud-amd64, the distribution's
#       current one. 6.12-cloud-amd64 is a newer one, 6.1.0-56-cloud-amd64 a certain one,
#       bullseye/cloud-amd64 that of another release of Debian
#   -m  kernel modules that COMMAND can modprobe; those they need come along
#   -t  the guest is killed after this time (100)
#
# Exit status 124: the time was over; 125: the guest died (in both cases the end of its console is
# on stderr); 126: there is no guest (stderr says why). Kernels are kept in build/guest/.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
CACHE=$TOP/build/guest
TIMED_OUT=124 DIED=125 UNAVAILABLE=126

kernel=cloud-amd64 modules='' limit=100
while getopts k:m:t: opt; do
	case $opt in
	k) kernel=$OPTARG ;;
	m) modules=${OPTARG//,/ } ;;
	t) limit=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
release=
[[ $kernel != */* ]] || release=${kernel%%/*} kernel=${kernel#*/}
[ $# -gt 0 ] || { echo 'lab.sh: what shall the guest do?' >&2; exit 2; }

unavailable() {
	echo "no guest: $*" >&2
	exit $UNAVAILABLE
}

# Lists of packages of another release, from the same mirrors, beside those of this system; they are
# taken once.
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

# A meta package depends on the version that is current.
version_of() {
	local version
	version=$(apt-cache depends "linux-image-$1" 2>/dev/null |
		sed -n 's/.*Depends: linux-image-\([0-9]\)/\1/p' | head -n 1)
	version=${version:-$1}
	[[ $version == *.*.* ]] && echo "$version"
}

# Leaves the package in $CACHE/$version, not installed.
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
	# The lists of packages are missing, or so old that their version has gone.
	apt-get update -q=2 && version=$(version_of "$kernel") && unpack
}

# add FILE...: at the same place in the guest
add() {
	cp -rL --parents -t "$root" "$@"
}

# Programs and Lua modules, with the shared libraries they are linked with.
add_system() {
	local program files=() libraries
	for program in bash busybox busted chrt modprobe nice perf; do
		program=$(command -v $program) && files+=("$program")
	done
	files+=(/usr/share/lua/5.1 /usr/share/luajit-2.1* /usr/lib/*/lua/5.1)
	# Loaded at run time.
	files+=(/usr/lib/*/libbpf.so.1)
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
	mapfile -t files < <(sed -n "s:^insmod $from/::p" "$tmp/modules" | cut -d ' ' -f 1)
	(cd "$from" && add "lib/modules/$version"/modules.* "${files[@]}")
}

make_root() {
	mkdir -p "$root"/{usr/bin,usr/sbin,proc,sys,dev,tmp,etc,profscript}
	ln -s usr/bin usr/sbin "$root"
	add_system
	[ -z "$modules" ] || add_modules
	(cd "$TOP" && cp -r --parents -t "$root/profscript" profscript bindings scripts examples tests build/workloads)
	# BPF programs of tests that were compiled here.
	[ ! -d "$TOP/build/cache" ] || cp -r "$TOP/build/cache" "$root/profscript/build"
	cp "$TOP/tests/guest/init" "$root/init"
	echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
	echo "$*" >"$root/command"
	(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$tmp/initramfs"
}

# One host thread for all virtual CPUs: with one each, the kernel dies sooner or later of patching
# its own code, as it does when a tracepoint is enabled.
boot() {
	timeout --foreground -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot \
		-display none -machine q35,hpet=off,i8042=off -accel tcg,thread=single -cpu max -smp 4 \
		-m 1G -kernel "$CACHE/$version/boot/vmlinuz-$version" -initrd "$tmp/initramfs" \
		-append 'console=ttyS0 loglevel=4 panic=-1 oops=panic nokaslr mitigations=off tsc=reliable' \
		-serial "file:$tmp/console" -chardev stdio,id=out,signal=off -serial chardev:out \
		-serial "file:$tmp/status" </dev/null 2>"$tmp/qemu"
}

for program in qemu-system-x86_64 busybox cpio modprobe apt-get; do
	command -v $program >/dev/null || unavailable "$program is not installed"
done
fetch >&2 || unavailable "apt-get cannot download linux-image-$kernel${release:+ of $release}"
exec {lock}>&-
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
make_root "$@"
boot
status=$?
read -r result <"$tmp/status" && exit "$result"
# Without the guesses among the stack's frames, the reason is in these lines.
{ cat "$tmp/qemu" && grep -v '  ? ' "$tmp/console" | tail -n 40; } >&2
[ $status -eq $TIMED_OUT ] && exit $TIMED_OUT
exit $DIED
