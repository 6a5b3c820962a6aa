#!/bin/sh
# run.sh: does everything work? Installs what is missing, builds with warnings as errors, runs every suite, the
# sanitizer setups and the checks, and closes with one line of counts.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -eu

source_root=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_root"
. examples/setup.sh

install_packages $build_packages chromium chromium-driver clang-format gi-docgen gjs groff-base iproute2 libopenmpi-dev libucx-dev libxml2-utils man-db mypy openmpi-bin openssl valac zsh

out=build/test
mkdir -p "$out"
results=$out/results
: > "$results"
failed=0

# $1: title, $2: meson build directory, further arguments are those of `meson test`. Keeps the counts of its log.
run_suites () {
  title=$1
  directory=$2
  shift 2
  echo "--- $title"
  status=0
  rm -f "$directory"/meson-logs/*.json
  # Many tests wait for most of their time, and none asks for how long something took.
  meson test -C "$directory" --no-rebuild --num-processes $((2 * $(nproc))) --print-errorlogs "$@" > "$directory.txt" 2>&1 || status=$?
  # Its name carries that of the setup.
  if ! python3 tests/again.py "$directory"/meson-logs/testlog*.json "$results" > "$directory.again"; then
    status=1
  elif [ -s "$directory.again" ]; then
    status=0
  fi
  while read -r again; do
    echo "once more, as the leak checker has died of itself: $again"
    meson test -C "$directory" --no-rebuild --logbase again "$@" "$again" < /dev/null >> "$directory.txt" 2>&1 || status=1
    cat "$directory"/meson-logs/again*.json >> "$results" || status=1
  done < "$directory.again"
  grep -E '^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout):' "$directory.txt" || tail -n 40 "$directory.txt"
  if [ "$status" != 0 ]; then
    failed=1
    sed -n '/Summary of Failures/,$p' "$directory.txt"
    grep -E '^not ok|ERROR' "$directory.txt" | head -n 40 || true
  fi
}

# What a sanitizer prints needs lines of sources and no more; and with both sanitizers -O2 takes more than twice as long
# to compile, and saves a fraction of that when it runs.
few="-Dc_args=-g1 -Dcpp_args=-g1"

# What could be left out where a package is missing must not be left out here.
build "$out/plain" -Dwerror=true -Dgir=enabled -Dvapi=enabled -Ddocs=enabled -Dtests=enabled -Ducx=enabled -Dbench-peers=auto
run_suites "plain: all suites" "$out/plain"

build "$out/tsan" -Dwerror=true $few -Db_sanitize=thread -Db_lundef=false -Dgir=disabled -Ddocs=disabled
run_suites "thread sanitizer: exec, core, processes, sim, objects" "$out/tsan" --setup tsan --suite exec --suite core \
  --suite process --suite sim --suite object --no-suite children --no-suite alone

build "$out/asan" -Dwerror=true $few -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false -Dgir=disabled -Ddocs=disabled
# once: long searches through interleavings, and figures, of code that other tests run as well.
run_suites "address and undefined behaviour sanitizers: all C suites" "$out/asan" --setup asan \
  --no-suite gi --no-suite install --no-suite browser --no-suite stress --no-suite once

echo "--- format"
if find pto sim tests examples -name '*.[ch]' -o -name '*.cpp' -o -name '*.cc' \
  | xargs clang-format --dry-run -Werror > "$out/format.txt" 2>&1; then
  echo 'passed 1 failed 0 skipped 0' > "$out/format.count"
else
  head -n 20 "$out/format.txt"
  echo 'passed 0 failed 1 skipped 0' > "$out/format.count"
  failed=1
fi

# One test of meson is one file of several tests: their TAP lines are what is counted.
python3 tests/count.py "$results" "$out/format.count"
exit $failed
