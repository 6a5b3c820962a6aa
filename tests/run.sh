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
# What failed is said once more at the end: the middle of a long log is easily lost.
failures=$out/failures
: > "$failures"
counts=
failed=0
debian_13=
# Holds the TMPDIR of the tests. The path is short: that of a socket has 108 bytes.
temporary=$(mktemp -d)
chmod 755 "$temporary"

clean_up () {
  [ -z "$debian_13" ] || kill "$debian_13" 2> /dev/null || true
  rm -rf "$temporary"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# $1: what meson calls its log, whose name carries that of the setup, too. Says which tests are to be run again, and whether no
# other has failed.
judge () {
  python3 tests/again.py "$directory"/meson-logs/"$1"*.json "$results" > "$directory.again" 2>> "$directory.failures"
}

# $1: name, $2: passed, failed, skipped.
count () {
  echo "$2" > "$out/$1.count"
  counts="$counts $out/$1.count"
}

# $1: name. Names what tests have left in TMPDIR. In the plain build, which runs all of them, that is a failure: a sanitizer
# that dies takes its test with it.
count_left () {
  (cd "$temporary/t" && find . -mindepth 1 | sort) > "$directory.left"
  if [ -s "$directory.left" ]; then
    echo "left in TMPDIR by the tests:"
    head -n 40 "$directory.left"
    [ "$1" = plain ] || return 0
    head -n 10 "$directory.left" | sed 's/^/left in TMPDIR: /' >> "$failures"
    count "$1-left" 'passed 0 failed 1 skipped 0'
    failed=1
  else
    count "$1-left" 'passed 1 failed 0 skipped 0'
  fi
}

# One test of meson is one file of several tests: their TAP lines are what is counted.
close () {
  [ ! -s "$failures" ] || cat "$failures"
  python3 tests/count.py "$results" $counts
  exit $failed
}

# $1: title, $2: meson build directory, further arguments are those of `meson test`, which builds what these tests need.
# Keeps the counts of its log.
run_suites () {
  title=$1
  directory=$2
  shift 2
  echo "--- $title"
  status=0
  start=$(date +%s)
  # What one build's tests have compiled, the next one's find.
  mkdir -p "$out/cache"
  [ -e "$directory/tests/cache" ] || ln -s "$source_root/$out/cache" "$directory/tests/cache"
  rm -f "$directory"/meson-logs/*.json
  # Many tests wait for most of their time, and none asks for how long something took.
  rm -rf "$temporary/t"
  # As /tmp: programs of other users run in some tests.
  mkdir -m 1777 "$temporary/t"
  TMPDIR=$temporary/t meson test -C "$directory" --num-processes $((2 * $(nproc))) --print-errorlogs "$@" > "$directory.txt" 2>&1 || status=$?
  : > "$directory.failures"
  if ! judge testlog; then
    status=1
  elif [ -s "$directory.again" ]; then
    status=0
  fi
  leaks=
  for round in 1 2 3; do
    [ -s "$directory.again" ] || break
    # A leak checker that has died three times is left out.
    [ "$round" != 3 ] || leaks=0
    echo "once more${leaks:+ without a look for leaks}, as their sanitizer has died of itself: $(paste -s -d , "$directory.again")"
    LSAN_OPTIONS=${leaks:+detect_leaks=0} TMPDIR=$temporary/t xargs -d '\n' -a "$directory.again" meson test -C "$directory" --no-rebuild --logbase again "$@" >> "$directory.txt" 2>&1 || true
    judge again || status=1
  done
  if [ -s "$directory.again" ]; then
    status=1
    cat "$directory"/meson-logs/again*.json >> "$results"
  fi
  grep -E '^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout):' "$directory.txt" || tail -n 40 "$directory.txt"
  echo "($(($(date +%s) - start)) s)"
  if [ "$status" != 0 ]; then
    failed=1
    grep -E ' (FAIL|ERROR|TIMEOUT) ' "$directory.txt" | sort -u | head -n 40 || true
    head -n 200 "$directory.failures" | tee -a "$failures"
  fi
  count_left "$(basename "$directory")"
}

begin=$(date +%s)
# Beside everything else: it waits for packages, and most tests wait.
if [ -n "$all" ]; then
  rm -f "$out/debian-13.json"
  sh tests/debian-13.sh "$out/debian-13.json" > "$out/debian-13.txt" 2>&1 &
  debian_13=$!
fi

# What could be left out where a package is missing must not be left out here.
# Debugging information has lines of sources and no more everywhere: the rest takes a fifth of the time to compile.
lines="-Dc_args=-g1 -Dcpp_args=-g1"
configure "$out/plain" -Dwerror=true $lines -Dgir=enabled -Dvapi=enabled -Ddocs=enabled -Dtests=enabled -Ducx=enabled -Dbench-peers=auto
if [ -n "$suites" ]; then
  run_suites "suites$(echo "$suites" | sed 's/ --suite / /g')" "$out/plain" $suites
  close
fi
build "$out/plain"
run_suites "plain: all suites" "$out/plain"

# Optimization takes longer to compile than it saves when these tests run: -O2 twice as long as -O1, and that, with the address
# sanitizer, twice as long as none. The thread sanitizer looks at far more without any.
# Repetitions are a twentieth there: the plain build has just run all of them.
export PTO_TEST_SHORT=1
few="-Dwerror=true $lines -Db_lundef=false -Dgir=disabled -Ddocs=disabled"

# Without the precompiled header: each file includes what it needs.
configure "$out/tsan" $few -Doptimization=1 -Db_pch=false -Db_sanitize=thread
run_suites "thread sanitizer: exec, core, processes, sim, objects" "$out/tsan" --setup tsan --suite exec --suite core \
  --suite process --suite sim --suite object --no-suite children --no-suite alone

configure "$out/asan" $few -Doptimization=0 -Db_sanitize=address,undefined
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
    head -n 20 "$out/format.txt" | tee -a "$failures"
    count format 'passed 0 failed 1 skipped 0'
    failed=1
  fi
fi

if [ -n "$all" ]; then
  echo "--- Debian 13"
  status=0
  wait $debian_13 || status=$?
  debian_13=
  case $status in
    0)
      grep -E '^(Ok|Fail|Skipped|Timeout):' "$out/debian-13.txt"
      echo "($(($(date +%s) - begin)) s, beside the others)"
      cat "$out/debian-13.json" >> "$results"
      ;;
    77)
      echo "skipped: no mirror"
      count debian-13 'passed 0 failed 0 skipped 1'
      ;;
    *)
      tail -n 20 "$out/debian-13.txt"
      echo "Debian 13: exit status $status" >> "$failures"
      [ ! -e "$out/debian-13.json" ] || python3 tests/again.py "$out/debian-13.json" /dev/null 2>> "$failures" || true
      count debian-13 'passed 0 failed 1 skipped 0'
      failed=1
      ;;
  esac
fi

close
