#!/bin/sh
# debian-13.sh: does libpto work on a Debian 13 on which nothing is installed?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: sh tests/debian-13.sh LOG
#
# Makes a minimal Debian 13 below build, puts this checkout into it, runs README's first command there as a user with sudo, and
# the suites quick and bindings, whose log of meson becomes LOG. Its processes and mounts are in namespaces of their own and
# end with this script. Runs as root or with sudo. Exit status 77: no mirror has the packages.
set -eu

source_root=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_root"
[ "$(id -u)" = 0 ] || exec sudo sh "$0" "$@"
. examples/setup.sh

if [ "${1-}" != --inside ]; then
  install_packages debootstrap
  mkdir -p build
  directory=$(mktemp -d "$source_root/build/debian-13.XXXXXX")
  # A shell has what it starts in the background ignore these signals, and tests send them.
  env --default-signal=INT,QUIT unshare --mount --pid --fork --kill-child sh "$0" --inside "$directory" "$(debian_mirror)" "$1" &
  inside=$!
  # What fails in a trap would be the exit status of this script, and inside has mostly ended by itself.
  trap 'kill $inside 2> /dev/null || true; wait $inside || true; rm -rf "$directory"' EXIT
  trap 'exit 130' INT TERM
  status=0
  wait $inside || status=$?
  exit $status
fi

root=$2
mirror=$3
log=$4
packages="$build_packages gjs libxml2-utils mypy valac"

# $@: a command that fetches packages. Without a mirror there is nothing to test.
fetch () {
  "$@" > "$root.log" 2>&1 || {
    tail -n 5 "$root.log"
    rm -f "$root.log"
    exit 77
  }
  rm -f "$root.log"
}

# What is mounted inside of $root is seen in this namespace only, and gone with it.
mount --make-rprivate /
fetch debootstrap --variant=minbase --include=ca-certificates,sudo trixie "$root" "$mirror"
chmod 755 "$root"
cp -a /etc/apt/apt.conf.d "$root/etc/apt"
echo 'Acquire::Retries "3";' > "$root/etc/apt/apt.conf.d/99retries"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mkdir -p "$root/dev/pts" "$root/dev/shm" "$root/srv/libpto"
mount -t devpts -o ptmxmode=0666,newinstance devpts "$root/dev/pts"
ln -sf pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
fetch chroot "$root" apt-get update
fetch chroot "$root" apt-get install --yes --no-install-recommends --download-only $packages
tar --exclude=./build --exclude='./build-*' --exclude=./.git --create . | tar --directory "$root/srv/libpto" --extract

# $1: what is run in the checkout, by a user with sudo.
run () {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ${http_proxy+"http_proxy=$http_proxy"} \
    su somebody -c "cd /srv/libpto && $1"
}

chroot "$root" useradd --create-home --shell /bin/sh somebody
echo 'somebody ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/somebody"
chroot "$root" chown -R somebody /srv/libpto
# Not once: a search through interleavings finds the same with every compiler.
suites='--suite quick --suite bindings --no-suite once'
# The first build has all that the tests need, so that they need no second one.
run "source_root=\$PWD; . examples/setup.sh; install_packages $(echo $packages); configure build -Dwerror=true -Dc_args=-g1 -Dcpp_args=-g1"
run 'sh examples/run.sh'
run ". examples/setup.sh; build build \$(python3 tests/needed.py build $suites)"
status=0
run "meson test -C build --no-rebuild --num-processes \$((2 * \$(nproc))) $suites --print-errorlogs" || status=$?
cp "$root/srv/libpto/build/meson-logs/testlog.json" "$log"
exit $status
