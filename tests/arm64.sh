#!/bin/sh
# arm64.sh: does libpto work on aarch64? Cross-builds the suites exec, core, sim and process, runs them in QEMU, and
# closes with one line of counts.
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: sh tests/arm64.sh [DIRECTORY]            default: build/arm64
#
# Debian 12 or newer. Installs the compiler and QEMU where they are missing. GLib for aarch64 is unpacked in DIRECTORY:
# apt fetches it with lists of its own, so the architectures and the packages of this machine stay as they are.
# Exit status 77: the packages could not be fetched.
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

# The static one also serves. It is not installed here, since it registers itself with the kernel.
find_qemu () {
  command -v qemu-aarch64-static || command -v qemu-aarch64 || true
}

packages="gcc meson ninja-build pkg-config gettext python3 libglib2.0-dev-bin gcc-$host g++-$host libc6-dev-arm64-cross"
[ -n "$(find_qemu)" ] || packages="$packages qemu-user"
install_packages $packages
qemu=$(find_qemu)

# $@: arguments. An apt-get that knows packages for arm64 only, of which none is installed.
apt_get_arm64 () {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
    -o Dir::State="$out/apt" -o Dir::State::status="$out/apt/status" -o Dir::Cache="$out/apt/cache" "$@"
}

no_mirror () {
  tail -n 5 "$out/apt.log" >&2
  echo "arm64.sh: skipped: no mirror"
  exit 77
}

# Fills $root with GLib, JSON-GLib and the libraries that they need; the C library is the cross-compiler's.
fetch_libraries () {
  rm -rf "$root" "$out/apt" "$out/packages"
  mkdir -p "$root" "$out/packages" "$out/apt/lists/partial" "$out/apt/cache/archives/partial"
  : > "$out/apt/status"
  # Its status is also that of this machine's hooks: the lists tell whether it worked.
  apt_get_arm64 update > "$out/apt.log" 2>&1 || true
  ls "$out"/apt/lists/*Packages* > /dev/null 2>&1 || no_mirror
  apt_get_arm64 -s install --no-install-recommends libglib2.0-dev libjson-glib-dev > "$out/apt.log" 2>&1 || {
    tail -n 20 "$out/apt.log" >&2
    fail "apt-get finds no GLib for arm64"
  }
  libraries=$(awk '$1 == "Inst" && $2 ~ /^(lib|zlib)/ && $2 !~ /^lib(c|gcc|python)/ { print $2 }' "$out/apt.log")
  (cd "$out/packages" && apt_get_arm64 download $libraries) > "$out/apt.log" 2>&1 || no_mirror
  for package in "$out"/packages/*.deb; do
    dpkg-deb -x "$package" "$root"
  done
  rm -rf "$out/apt" "$out/apt.log" "$out/packages"
}

if [ ! -e "$out/fetched" ]; then
  echo "Fetching GLib for arm64 ..."
  fetch_libraries
  : > "$out/fetched"
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
echo "Building and running the suites exec, core, sim and process ..."
status=0
# It builds what these suites need.
PTO_TEST_SHORT=1 meson test -C "$out/meson" $suites --timeout-multiplier 5 --print-errorlogs --test-args "$skip" \
  > "$out/test.txt" 2>&1 || status=1
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
