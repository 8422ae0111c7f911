#!/usr/bin/env bash
# root.sh makes and uses Debian roots that hold the real ADIOS2, the peer of the interop tests.
#
#   interop/root.sh make SUITE                       make the root, or do nothing; prints its path
#   interop/root.sh run SUITE [OPTION...] -- CMD...  run CMD inside the root
#   interop/root.sh clean SUITE                      remove the root
#
# Options of run:
#   --bind HOST[:INSIDE]   show a folder of the host inside, writable (INSIDE defaults to HOST)
#   --chdir DIR            start CMD in DIR (a path inside the root; default /)
#
# SUITE is trixie or sid, or one of these with "-dev": a root with a compiler and the headers of
# ADIOS2 in both flavours, and with the programs of libfabric, for bench.
#
# Roots live outside the tree, in ${WEFT_ROOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft/roots}.
# Everything but the root's path, and what CMD prints, goes to stderr. README.md beside this file
# says what is inside and how the peers are called.
#
# Two rules keep the host clean whatever happens, kill -9 included. Every mount is made in a
# private mount namespace, so the kernel takes it away with the last process. And run ends in exec:
# the pid that the caller started is the pid of CMD.
set -euo pipefail

self=$(realpath "${BASH_SOURCE[0]}")
cache=${WEFT_ROOT_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/weft/roots}
stamp=etc/weft-root.recipe # inside the root: the recipe it was made with; written last

say() { printf 'root.sh: %s\n' "$*" >&2; }
die() {
	say "$*"
	exit 1
}

# ---- the recipe: what is in a root. Its text is hashed, so a changed recipe makes a new root.

recipe_packages() {
	echo python3 python3-numpy python3-mpi4py openmpi-bin \
		adios2-serial-bin adios2-scripts python3-adios2 python3-adios2-serial python3-adios2-mpi
}

# use_recipe SUITE: the -dev roots differ in what they hold, and that alone. Python is there for the
# last check of recipe_install.
use_recipe() {
	case $1 in
	*-dev)
		recipe_packages() {
			echo python3 python3-numpy python3-adios2 python3-adios2-serial \
				g++ libadios2-serial-c++11-dev libadios2-mpi-c++11-dev libopenmpi-dev openmpi-bin \
				libfabric-bin
		}
		;;
	esac
}

# recipe_base TARGET SUITE MIRROR KEYRING: the bare system and the rules it lives by.
recipe_base() {
	local target=$1 suite=$2 mirror=$3 keyring=$4
	debootstrap --variant=minbase --keyring="$keyring" --force-check-gpg "$suite" "$target" "$mirror"
	# No daemon may start in a root.
	printf '#!/bin/sh\nexit 101\n' >"$target/usr/sbin/policy-rc.d"
	chmod 755 "$target/usr/sbin/policy-rc.d"
	# Nobody reads manuals here, and a half-made root is thrown away, so dpkg need not sync.
	cat >"$target/etc/dpkg/dpkg.cfg.d/weft" <<-CFG
		force-unsafe-io
		path-exclude=/usr/share/doc/*
		path-exclude=/usr/share/man/*
		path-exclude=/usr/share/locale/*
	CFG
	printf 'deb [signed-by=%s] %s %s main\n' \
		/usr/share/keyrings/debian-archive-keyring.gpg "$mirror" "$suite" >"$target/etc/apt/sources.list"
	# The host's proxy and clock rules hold inside as well.
	apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries)' >"$target/etc/apt/apt.conf.d/90weft-host" || true
	cp -L /etc/resolv.conf "$target/etc/resolv.conf"
}

# recipe_install TARGET: the peers.
recipe_install() {
	local target=$1
	mount --rbind /proc "$target/proc"
	mount --rbind /sys "$target/sys"
	mount --rbind /dev "$target/dev"
	in_chroot "$target" apt-get update
	# shellcheck disable=SC2046 # a list of words
	in_chroot "$target" apt-get install -y --no-install-recommends $(recipe_packages)
	in_chroot "$target" apt-get clean
	in_chroot "$target" python3 -c 'import adios2; print("adios2", adios2.__version__)' >&2
	rm -rf --one-file-system "$target"/var/lib/apt/lists/*
}

recipe_hash() {
	{
		printf '%s %s\n' "$1" "$(dpkg --print-architecture)"
		declare -f recipe_packages recipe_base recipe_install
	} | sha256sum | cut -d' ' -f1
}

in_chroot() {
	local target=$1
	shift
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive chroot "$target" "$@"
}

# ---- what the host must offer

need_host() {
	[ "$(id -u)" = 0 ] || die "needs root, to chroot and mount"
	local word missing=()
	for word in unshare mount chroot flock dpkg apt-get realpath; do
		command -v "$word" >/dev/null || missing+=("$word")
	done
	[ ${#missing[@]} = 0 ] || die "this host has no ${missing[*]} (Debian or a relative is needed)"
}

# need_debootstrap SUITE installs what makes a root, unless WEFT_ROOT_INSTALL=0 forbids it.
need_debootstrap() {
	local want=()
	command -v debootstrap >/dev/null || want+=(debootstrap)
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || want+=(debian-archive-keyring)
	[ ${#want[@]} = 0 ] && return
	[ "${WEFT_ROOT_INSTALL:-1}" = 1 ] || die "this host lacks ${want[*]} (interop/root.sh make $1 installs it)"
	say "installing ${want[*]}"
	{
		apt-get update
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${want[@]}"
	} >&2
}

# find_mirror SUITE: the first archive in apt's own configuration that serves Debian's SUITE.
find_mirror() {
	local suite=$1 uri scratch release
	scratch=$(mktemp -d)
	chmod 755 "$scratch"
	release=$scratch/Release
	# shellcheck disable=SC2016 # apt's variable, not the shell's
	while read -r uri; do
		uri=${uri%/}
		/usr/lib/apt/apt-helper -q download-file "$uri/dists/$suite/Release" "$release" >&2 || continue
		if grep -q '^Origin: Debian$' "$release" && grep -q '^Label: Debian$' "$release"; then
			rm -rf --one-file-system "$scratch"
			printf '%s\n' "$uri"
			return
		fi
	done < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | awk '/^https?:/ && !seen[$0]++')
	rm -rf --one-file-system "$scratch"
	die "no archive in apt's configuration serves Debian $suite"
}

# ---- make

# has_mounts DIR: true while something is mounted in or on DIR in this mount namespace.
has_mounts() {
	awk -v d="$1" '$5 == d || index($5, d "/") == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo
}

# remove_tree DIR: rm -rf that never walks into a mounted file system.
remove_tree() {
	[ -e "$1" ] || return 0
	! has_mounts "$1" || die "something is mounted in $1: not removing it"
	rm -rf --one-file-system "$1"
}

is_current() { [ -f "$1/$stamp" ] && [ "$(cat "$1/$stamp")" = "$2" ]; }

# lock_cache MODE SUITE: take the suite's lock on descriptor 9. A command started by run keeps it
# shared until it and its children end, so no root is replaced under a living peer.
lock_cache() {
	local mode=$1 suite=$2
	exec 9>>"$cache/$suite.lock"
	flock "$mode" --nonblock 9 && return
	say "waiting for the lock $cache/$suite.lock (a root is being made, or peers run in it)"
	flock "$mode" 9
}

make_root() {
	local suite=$1 hash dir
	need_host
	mkdir -p "$cache"
	hash=$(recipe_hash "$suite")
	dir=$cache/$suite
	lock_cache --shared "$suite"
	if ! is_current "$dir" "$hash"; then
		exec 9>&-
		lock_cache --exclusive "$suite"
		# Somebody else may have made it while we waited.
		is_current "$dir" "$hash" || unshare --mount --propagation private \
			bash "$self" __build "$suite" "$hash" >&2
		exec 9>&-
	fi
	printf '%s\n' "$dir"
}

# build runs in a mount namespace of its own and under the exclusive lock, which its children
# inherit: a partial tree seen under the lock belongs to nobody alive.
build() {
	local suite=$1 hash=$2 dir=$cache/$1 partial=$cache/$1.partial.$$ mirror dead
	for dead in "$cache/$suite".partial.* "$cache/$suite".old.*; do
		remove_tree "$dead"
	done
	need_debootstrap "$suite"
	mirror=$(find_mirror "${suite%-dev}")
	say "making $dir from $mirror"
	mkdir "$partial"
	(recipe_base "$partial" "${suite%-dev}" "$mirror" /usr/share/keyrings/debian-archive-keyring.gpg)
	# The mounts of recipe_install live in a namespace below, gone when it ends.
	unshare --mount --propagation private bash "$self" __install "$suite" "$partial"
	printf '%s\n' "$hash" >"$partial/$stamp"
	sync -f "$partial"
	if [ -e "$dir" ]; then
		mv -T "$dir" "$cache/$suite.old.$$"
	fi
	mv -T "$partial" "$dir"
	remove_tree "$cache/$suite.old.$$"
	say "made $dir"
}

clean_root() {
	local suite=$1 dead
	need_host
	[ -d "$cache" ] || return 0
	lock_cache --exclusive "$suite"
	for dead in "$cache/$suite" "$cache/$suite".partial.* "$cache/$suite".old.*; do
		remove_tree "$dead"
	done
}

# ---- run

run_root() {
	local suite=$1 dir
	shift
	make_root "$suite" >/dev/null
	lock_cache --shared "$suite"
	dir=$cache/$suite
	[ -f "$dir/$stamp" ] || die "the root $dir was removed meanwhile"
	exec unshare --mount --propagation private bash "$self" __enter "$dir" "$@"
}

# enter builds the view that CMD gets: a tmpfs with the root's folders bound into it read-only, so
# that whatever a peer writes outside the bound folders is gone with it.
enter() {
	local dir=$1 view=$cache/view entry name bind chdir=/ binds=()
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--bind)
			binds+=("${2:?--bind needs HOST[:INSIDE]}")
			shift 2
			;;
		--chdir)
			chdir=${2:?--chdir needs a folder}
			shift 2
			;;
		--)
			shift
			break
			;;
		*) die "run: unknown option $1" ;;
		esac
	done
	[ $# -gt 0 ] || die "run: no command"

	mkdir -p "$view"
	mount -t tmpfs -o mode=755 weft-root "$view"
	for entry in "$dir"/*; do
		name=${entry##*/}
		if [ -L "$entry" ]; then
			cp -P "$entry" "$view/$name"
			continue
		fi
		mkdir "$view/$name"
		case $name in
		proc | sys | dev) mount --rbind "/$name" "$view/$name" ;;
		tmp) chmod 1777 "$view/$name" ;;
		home | root | run | mnt | media | srv) ;; # empty and writable
		*)
			mount --bind "$entry" "$view/$name"
			mount -o remount,bind,ro "$view/$name"
			;;
		esac
	done
	mount -t tmpfs -o mode=1777 weft-shm "$view/dev/shm"

	for bind in "${binds[@]}"; do
		[ -d "${bind%%:*}" ] || die "run: --bind ${bind%%:*}: no such folder"
		mkdir -p "$view/${bind#*:}"
		mount --bind "${bind%%:*}" "$view/${bind#*:}"
	done

	# MPI as root, on one machine, without a remote shell or a network of its own; and ADIOS2 on
	# the loopback unless the caller says otherwise (README.md).
	exec env -u TMPDIR -u LD_LIBRARY_PATH -u PYTHONPATH \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_btl=self,sm OMPI_MCA_plm_rsh_agent= PRTE_MCA_plm_rsh_agent= \
		PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
		ADIOS2_SERIAL_INTERFACE="${ADIOS2_SERIAL_INTERFACE-lo}" \
		ADIOS2_MPI_INTERFACE="${ADIOS2_MPI_INTERFACE-lo}" \
		chroot "$view" env -C "$chdir" -- "$@"
}

# ---- the door

suite_of() {
	case ${1:-} in
	trixie | sid | trixie-dev | sid-dev) printf '%s\n' "$1" ;;
	'') die "which suite? (trixie, sid, trixie-dev or sid-dev)" ;;
	*) die "unknown suite $1 (trixie, sid, trixie-dev or sid-dev)" ;;
	esac
}

main() {
	local verb=${1:-} suite
	[ $# = 0 ] || shift
	case $verb in
	make | clean)
		suite=$(suite_of "$@")
		use_recipe "$suite"
		"${verb}_root" "$suite"
		;;
	run)
		suite=$(suite_of "$@")
		use_recipe "$suite"
		shift
		run_root "$suite" "$@"
		;;
	__build)
		use_recipe "$1"
		build "$@"
		;;
	__install)
		use_recipe "$1"
		recipe_install "$2"
		;;
	__enter) enter "$@" ;;
	*)
		sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$self" >&2
		exit 2
		;;
	esac
}

main "$@"
