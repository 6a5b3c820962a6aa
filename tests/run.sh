#!/bin/sh
# run.sh: does everything work? Installs what is missing, builds with warnings as errors, runs tests, and closes with one
# line of counts.
# SPDX-License-Identifier: LGPL-2.1-or-later
#
#   sh tests/run.sh                    every suite, the sanitizers, the format of the sources
#   sh tests/run.sh --suite NAME ...   these suites alone, without sanitizers
#   sh tests/run.sh --all              everything, and a new Debian 13
set -eu

source_root=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_root"
. examples/setup.sh

usage () {
  echo "usage: sh tests/run.sh [--all | --suite NAME ...]" >&2
  exit 2
}

all=
suites=
case ${1-} in
  --all)
    [ $# = 1 ] || usage
    all=yes
    ;;
  *)
    while [ $# -gt 0 ]; do
      [ "$1" = --suite ] && [ $# -gt 1 ] || usage
      suites="$suites --suite $2"
      shift 2
    done
    ;;
esac

install_packages $build_packages gi-docgen gjs glib-networking groff-base iproute2 libopenmpi-dev libucx-dev libxml2-utils man-db mypy openmpi-bin \
  openssl valac zsh
[ -n "$suites" ] || install_packages chromium chromium-driver clang-format
[ -z "$all" ] || install_packages python3-mesonpy python3-venv

out=build/test
mkdir -p "$out"
results=$out/results
: > "$results"
counts=
failed=0

# $1: title, $2: meson build directory, further arguments are those of `meson test`, which builds what these tests need.
# Keeps the counts of its log.
run_suites () {
  title=$1
  directory=$2
  shift 2
  echo "--- $title"
  status=0
  rm -f "$directory"/meson-logs/*.json
  # Many tests wait for most of their time, and none asks for how long something took.
  meson test -C "$directory" --num-processes $((2 * $(nproc))) --print-errorlogs "$@" > "$directory.txt" 2>&1 || status=$?
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

# $1: name, $2: passed, failed, skipped.
count () {
  echo "$2" > "$out/$1.count"
  counts="$counts $out/$1.count"
}

# What could be left out where a package is missing must not be left out here.
configure "$out/plain" -Dwerror=true -Dgir=enabled -Dvapi=enabled -Ddocs=enabled -Dtests=enabled -Ducx=enabled -Dbench-peers=auto
if [ -n "$suites" ]; then
  run_suites "suites$(echo "$suites" | sed 's/ --suite / /g')" "$out/plain" $suites
  python3 tests/count.py "$results"
  exit $failed
fi
build "$out/plain"
run_suites "plain: all suites" "$out/plain"

# What a sanitizer prints needs lines of sources and no more; with both sanitizers -O2 takes more than twice as long to compile,
# and saves a fraction of that when it runs.
# Repetitions are a twentieth there: the plain build has just run all of them.
export PTO_TEST_SHORT=1
few="-Dwerror=true -Dc_args=-g1 -Dcpp_args=-g1 -Db_lundef=false -Dgir=disabled -Ddocs=disabled"

configure "$out/tsan" $few -Db_sanitize=thread
run_suites "thread sanitizer: exec, core, processes, sim, objects" "$out/tsan" --setup tsan --suite exec --suite core \
  --suite process --suite sim --suite object --no-suite children --no-suite alone

configure "$out/asan" $few -Doptimization=1 -Db_sanitize=address,undefined
# once: long searches through interleavings, and figures, of code that other tests run as well.
run_suites "address and undefined behaviour sanitizers: all C suites" "$out/asan" --setup asan \
  --no-suite gi --no-suite install --no-suite browser --no-suite stress --no-suite once

# Another version breaks lines at other places.
if clang-format --version | grep -q 'version 14\.'; then
  echo "--- format"
  if find pto sim tests examples -name '*.[ch]' -o -name '*.cpp' -o -name '*.cc' \
    | xargs clang-format --dry-run -Werror > "$out/format.txt" 2>&1; then
    count format 'passed 1 failed 0 skipped 0'
  else
    head -n 20 "$out/format.txt"
    count format 'passed 0 failed 1 skipped 0'
    failed=1
  fi
fi

if [ -n "$all" ]; then
  echo "--- Debian 13"
  status=0
  sh tests/debian-13.sh "$out/debian-13.json" > "$out/debian-13.txt" 2>&1 || status=$?
  case $status in
    0)
      grep -E '^(Ok|Fail|Skipped|Timeout):' "$out/debian-13.txt"
      cat "$out/debian-13.json" >> "$results"
      ;;
    77)
      echo "skipped: no mirror"
      count debian-13 'passed 0 failed 0 skipped 1'
      ;;
    *)
      tail -n 60 "$out/debian-13.txt"
      count debian-13 'passed 0 failed 1 skipped 0'
      failed=1
      ;;
  esac
fi

# One test of meson is one file of several tests: their TAP lines are what is counted.
python3 tests/count.py "$results" $counts
exit $failed
