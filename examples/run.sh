#!/bin/sh
# run.sh: what does libpto do? Installs what is missing, builds the library and its programs, and runs batch paged attention
# on a simulated chip.
# SPDX-License-Identifier: LGPL-2.1-or-later
set -eu

source_root=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_root"
. examples/setup.sh

install_packages $build_packages
configure build
build build product

pto=build/pto/programs/pto/pto
$pto run examples/batch-paged-attention --case seed --repeat 5
$pto run examples/batch-paged-attention --case varlen --repeat 5
echo
echo "The first case once more, on the chip's own clock and recorded:"
$pto run examples/batch-paged-attention --case seed --backend det --svg build/attention.svg --report build/attention.html --trace build/attention.json
echo
echo "Next: open build/attention.html in a browser, and build/attention.json in ui.perfetto.dev,"
echo "      run another example ($pto run examples/vector), or write your own: doc/own.md"
