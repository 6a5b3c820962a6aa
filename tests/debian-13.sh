#!/bin/sh
# debian-13.sh: do README's commands work on a Debian 13 on which nothing is installed?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Makes a minimal Debian 13 below build, puts this checkout into it, and runs there what is listed at the end. Its processes
# and its mounts are in namespaces of their own and end with this script. As root or with sudo. Exit status 77: no mirror has
# the packages. Closes with the counts of the tests that ran there.
set -eu

source_root=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_root"
[ "$(id -u)" = 0 ] || exec sudo sh "$0" "$@"

if [ "${1-}" != --inside ]; then
  . examples/setup.sh
  install_packages debootstrap
  mkdir -p build
  directory=$(mktemp -d "$source_root/build/debian-13.XXXXXX")
  trap 'rm -rf "$directory"' EXIT
  trap 'exit 130' INT TERM
  mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2> /dev/null | grep -v security | head -n 1)
  [ -n "$mirror" ] || mirror=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' /etc/apt/sources.list)
  status=0
  unshare --mount --pid --fork --kill-child sh "$0" --inside "$directory" "$mirror" || status=$?
  exit $status
fi

root=$2
mirror=$3

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
cp -a /etc/apt/apt.conf.d "$root/etc/apt"
echo 'Acquire::Retries "3";' > "$root/etc/apt/apt.conf.d/99retries"
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/pts" "$root/dev/shm" "$root/srv/libpto"
mount -t devpts -o ptmxmode=0666,newinstance devpts "$root/dev/pts"
ln -sf pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
fetch chroot "$root" apt-get update
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar --directory "$root/srv/libpto" --extract

# $1: user, $2: what is run in the checkout.
run () {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ${http_proxy+"http_proxy=$http_proxy"} \
    su "$1" -c "cd /srv/libpto && $2"
}

chroot "$root" useradd --create-home --shell /bin/sh somebody
echo 'somebody ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/somebody"
chroot "$root" chown -R somebody /srv/libpto
run somebody "sh examples/run.sh"
run root "sh tests/run.sh --suite quick --suite gi --suite examples"
