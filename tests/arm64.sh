#!/bin/sh
# arm64.sh: does libpto work on aarch64? Cross-builds the suites exec, core, sim and process, runs them in QEMU, and
# closes with one line of counts.
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: sh tests/arm64.sh [DIRECTORY]            default: build/arm64
#
# Debian 12 or newer. Installs the compiler where it is missing. GLib for aarch64 is unpacked in DIRECTORY, and so is
# QEMU from Debian 13 where no QEMU 8 is installed: libpto reserves many GiB of addresses, and QEMU 7 stores a record
# of each page. apt fetches both with lists of its own, so the architectures and the packages of this machine stay as
# they are. Exit status 77: the packages could not be fetched.
#
# tests/arm64.skip names the tests that cannot pass in QEMU. PTO_TEST_SHORT makes all others short.
set -eu

source_root=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_root"
. examples/setup.sh

[ "$(uname -m)" != aarch64 ] || fail "this machine needs no emulator: meson test"

host=aarch64-linux-gnu
skip_list=tests/arm64.skip
mkdir -p "${1:-build/arm64}"
out=$(cd "${1:-build/arm64}" && pwd)
root=$out/root

install_packages gcc meson ninja-build pkg-config gettext python3 libglib2.0-dev-bin gcc-$host g++-$host libc6-dev-arm64-cross

# $1: architecture; further arguments are apt-get's. Its lists are in $out/apt, and no package is installed there.
apt_get () {
  architecture=$1
  shift
  apt-get -q -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User= \
    -o Dir::State="$out/apt" -o Dir::State::status="$out/apt/status" -o Dir::Cache="$out/apt/cache" "$@"
}

no_mirror () {
  tail -n 5 "$out/apt.log" >&2
  echo "arm64.sh: skipped: no mirror"
  exit 77
}

# $@: architecture, and options of apt-get. Fills $out/apt with lists.
update_lists () {
  rm -rf "$out/apt" "$out/packages"
  mkdir -p "$out/packages" "$out/apt/lists/partial" "$out/apt/cache/archives/partial"
  : > "$out/apt/status"
  # Its status is also that of this machine's hooks: the lists tell whether it worked.
  apt_get "$@" update > "$out/apt.log" 2>&1 || true
  ls "$out"/apt/lists/*Packages* > /dev/null 2>&1 || no_mirror
}

# $1: directory; further arguments are the files to unpack there from the packages that were fetched, without any: all.
unpack () {
  directory=$1
  shift
  rm -rf "$directory"
  mkdir -p "$directory"
  for package in "$out"/packages/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar --extract --directory "$directory" "$@"
  done
  rm -rf "$out/apt" "$out/apt.log" "$out/packages"
}

# Fills $root with GLib, JSON-GLib and the libraries that they need; the C library is the cross-compiler's.
fetch_libraries () {
  update_lists arm64
  apt_get arm64 -s install --no-install-recommends libglib2.0-dev libjson-glib-dev > "$out/apt.log" 2>&1 || {
    tail -n 20 "$out/apt.log" >&2
    fail "apt-get finds no GLib for arm64"
  }
  libraries=$(awk '$1 == "Inst" && $2 ~ /^(lib|zlib)/ && $2 !~ /^lib(c|gcc|python)/ { print $2 }' "$out/apt.log")
  (cd "$out/packages" && apt_get arm64 download $libraries) > "$out/apt.log" 2>&1 || no_mirror
  unpack "$root"
}

# Debian 13's QEMU is linked statically, so it runs on Debian 12.
fetch_qemu () {
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] $(debian_mirror) trixie main" > "$out/debian-13.list"
  set -- "$(dpkg --print-architecture)" -o Dir::Etc::sourcelist="$out/debian-13.list" -o Dir::Etc::sourceparts=-
  update_lists "$@"
  (cd "$out/packages" && apt_get "$@" download qemu-user) > "$out/apt.log" 2>&1 || no_mirror
  unpack "$out/qemu" ./usr/bin/qemu-aarch64
  rm "$out/debian-13.list"
}

# Prints the QEMU to use, if there is one.
find_qemu () {
  for program in qemu-aarch64 qemu-aarch64-static "$out/qemu/usr/bin/qemu-aarch64"; do
    version=$("$program" --version 2> /dev/null | sed -n 's/^qemu-aarch64 version \([0-9]*\).*/\1/p')
    [ "${version:-0}" -lt 8 ] || {
      command -v "$program"
      return
    }
  done
}

if [ ! -e "$out/fetched" ]; then
  echo "Fetching GLib for arm64 ..."
  fetch_libraries
  : > "$out/fetched"
fi
qemu=$(find_qemu)
if [ -z "$qemu" ]; then
  echo "Fetching QEMU from Debian 13 ..."
  fetch_qemu
  qemu=$(find_qemu)
  [ -n "$qemu" ] || fail "Debian 13's QEMU does not run here: install QEMU 8 or newer"
fi

# No runpath, which is not searched for the libraries of libraries.
link_args="'-Wl,--disable-new-dtags,-rpath,$root/usr/lib/$host:$root/lib/$host'"
ccache=
! command -v ccache > /dev/null || ccache="'ccache', "
cat > "$out/cross.ini.new" << END
[binaries]
c = [$ccache'$host-gcc']
cpp = [$ccache'$host-g++']
ar = '$host-ar'
strip = '$host-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['$qemu', '-L', '/usr/$host']
[properties]
sys_root = '$root'
pkg_config_libdir = ['$root/usr/lib/$host/pkgconfig', '$root/usr/share/pkgconfig']
[built-in options]
c_link_args = [$link_args]
cpp_link_args = [$link_args]
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
if ! cmp -s "$out/cross.ini.new" "$out/cross.ini" || [ ! -f "$out/meson/build.ninja" ]; then
  mv "$out/cross.ini.new" "$out/cross.ini"
  rm -rf "$out/meson"
  meson setup "$out/meson" --cross-file "$out/cross.ini" -Dwerror=true -Dtests=enabled -Dgir=disabled -Dvapi=disabled \
    -Ddocs=disabled -Dncurses=disabled -Dtls=disabled -Ducx=disabled -Dmpi=disabled > "$out/setup.txt" 2>&1 || {
    tail -n 30 "$out/setup.txt" >&2
    fail "meson setup failed"
  }
fi

suites="--suite exec --suite core --suite sim --suite process"
skip=$(awk '/^\// { printf " -s %s", $1 }' "$skip_list")
# One test may take 1 GiB.
processes=$(awk -v processes="$(nproc)" '$1 == "MemAvailable:" { n = int ($2 / 1048576) }
  END { if (n > processes) n = processes; print (n > 1 ? n : 1) }' /proc/meminfo)
echo "Building and running the suites exec, core, sim and process ..."
status=0
# It builds what these suites need.
PTO_TEST_SHORT=1 meson test -C "$out/meson" $suites --num-processes "$processes" --timeout-multiplier 5 \
  --print-errorlogs --test-args "$skip" > "$out/test.txt" 2>&1 || status=1
grep -E '^(Ok|Fail|Skipped|Timeout):' "$out/test.txt" || { tail -n 40 "$out/test.txt"; fail "nothing was run"; }
[ $status = 0 ] || sed -n '/Summary of Failures/,$p' "$out/test.txt"

# Each test that was skipped, and the reason.
log=$out/meson/meson-logs/testlog
sed -n 's/^ok [0-9]* \([^ ]*\) # SKIP *\(.*\)/\1 \2/p' "$log.txt" | sort -u > "$out/skipped"
while read -r name reason; do
  listed=$(awk -v name="$name" '$1 == name { sub (/^[^ ]* */, ""); print }' "$skip_list")
  echo "skipped: $name: ${listed:-$reason}"
done < "$out/skipped"
for name in $(awk '/^\// { print $1 }' "$skip_list"); do
  grep -q "^$name " "$out/skipped" || { echo "$skip_list: no test is called $name"; status=1; }
done

counts=$(python3 tests/count.py "$log.json" | tail -n 1)
echo "$counts" | awk '$5 * 20 > $1 + $3 + $5 { exit 1 }' || { echo "more than 5 % are skipped"; status=1; }
echo "$counts"
exit $status
