#!/bin/sh
# test-layers.sh: does every floor include only what lies below it?
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# usage: test-layers.sh SOURCE_ROOT
# Every #include of a file in quotes is followed to the file it names; those in angle brackets are told by their names.
set -u
LC_ALL=C
export LC_ALL

root=$(cd "$1" && pwd -P) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# Prints "file: included" for every include that a floor must not have.
# $1: tree, $2: floor's directory, $3: directories and files it may include from, $4: pattern of refused <names>.
violations ()
{
  find "$1/$2" -type f \( -name '*.[chS]' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cc' \) | sort |
  while read -r file; do
    sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*\([<"][^>"]*[>"]\).*/\1/p' "$file" |
    while read -r name; do
      bare=${name#?}
      bare=${bare%?}
      case $name in
      \<*)
        printf '%s\n' "$bare" | grep -Eq "$4" && printf '%s: %s\n' "${file#"$1"/}" "$name"
        ;;
      *)
        found=
        for directory in "$(dirname "$file")" "$1" "$1/pto/exec" "$1/pto/api"; do
          if [ -f "$directory/$bare" ]; then
            found=$(cd "$(dirname "$directory/$bare")" && pwd -P)/$(basename "$bare")
            break
          fi
        done
        allowed=no
        # Made by the build: says nothing about floors.
        [ "$bare" = config.h ] && [ -z "$found" ] && allowed=yes
        for place in $3; do
          case $found in
          "$1/$place" | "$1/$place"/*) allowed=yes ;;
          esac
        done
        [ $allowed = yes ] || printf '%s: %s\n' "${file#"$1"/}" "$name"
        ;;
      esac
    done
  done
}

no_glib='^(glib|gio|gobject|gmodule|json-glib|girepository|pto/|pto\.h)'
private='^pto/(core|exec)/|^sim/|-private\.h$|^pto/pto-'

floor ()
{
  case $1 in
  exec) violations "$2" pto/exec "pto/exec" "$no_glib" ;;
  core) violations "$2" pto/core "pto/core pto/exec/pto_exec.h pto/exec/pto_atomic.h pto/exec/heavy_fence.h pto/exec/text.h pto/api" "$no_glib" ;;
  process) violations "$2" pto/process "pto/process pto/core pto/exec pto/api" "$no_glib" ;;
  mpi) violations "$2" pto/mpi "pto/mpi pto/process pto/core pto/exec pto/api sim/combine.h" "$no_glib" ;;
  sim) violations "$2" sim "sim pto/core pto/exec pto/api" "$no_glib" ;;
  api) violations "$2" pto/api "pto/api" "$no_glib" ;;
  tools) violations "$2" pto/tools "pto/tools pto/api pto/pto-fabric-private.h pto/pto-save-private.h pto/pto-stdout-private.h pto/pto-text-private.h pto/pto-printable-private.h" "$private" ;;
  seeds) violations "$2" pto/seeds "pto/seeds pto/api" "$private" ;;
  examples) violations "$2" examples "examples pto/api" "$private" ;;
  esac
}

# Prints the circles among the files of one directory, x.c, x.h and x-private.h being one: who includes whom.
circles ()
{
  find "$1" -maxdepth 1 -name '*.[ch]' | while read -r file; do
    own=$(basename "${file%.*}")
    sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"/]*\)\.h".*/\1/p' "$file" |
    while read -r name; do
      [ "${name%-private}" != "${own%-private}" ] && [ -f "$1/$name.h" ] && echo "${own%-private} ${name%-private}"
    done
  done | sort -u | tsort 2>&1 >/dev/null
}

floors="exec core process sim mpi api tools seeds examples"
n=0
status=0
echo "1..23"

report ()
{
  n=$((n + 1))
  if [ "$2" = ok ]; then
    echo "ok $n $1"
  else
    echo "not ok $n $1"
    status=1
  fi
}

for name in $floors; do
  floor "$name" "$root" >"$scratch/found"
  sed 's/^/# /' "$scratch/found"
  if [ -s "$scratch/found" ]; then
    report "/pto/layers/$name" bad
  else
    report "/pto/layers/$name" ok
  fi
done

for floor in core:pto/core process:pto/process objects:pto; do
  circles "$root/${floor#*:}" >"$scratch/found"
  sed 's/^/# /' "$scratch/found"
  if [ -s "$scratch/found" ]; then
    report "/pto/layers/no-circle/${floor%%:*}" bad
  else
    report "/pto/layers/no-circle/${floor%%:*}" ok
  fi
done

# An error of the object layer is UTF-8 because its functions to set one are those of pto-error-private.h. Files that are
# also built elsewhere know paths only and display them.
grep -lE 'g_(set|prefix)_error' "$root"/pto/pto-*.c | while read -r file; do
  case $file in */pto-error.c | */pto-save.c | */pto-trace*.c) continue ;; esac
  grep -q '^#include "pto-error-private.h"' "$file" || echo "${file#"$root"/}"
done >"$scratch/found"
sed 's/^/# /' "$scratch/found"
if [ -s "$scratch/found" ]; then
  report /pto/layers/errors-are-text bad
else
  report /pto/layers/errors-are-text ok
fi

# The test itself: one wrong include on each floor is found.
tree=$scratch/tree
mkdir -p "$tree/pto/exec" "$tree/pto/core" "$tree/pto/process" "$tree/pto/mpi" "$tree/pto/api" "$tree/pto/tools" "$tree/pto/seeds" "$tree/sim" \
  "$tree/examples/one"
tree=$(cd "$tree" && pwd -P)
touch "$tree/pto/core/engine.h" "$tree/pto/exec/exec-private.h" "$tree/pto/pto-worker.h" "$tree/pto/api/tensor.h"
echo '#include "../core/engine.h"' >"$tree/pto/exec/a.c"
echo '# include "../exec/exec-private.h"' >"$tree/pto/core/a.c"
printf '#include "../core/engine.h"\n#include "../exec/exec-private.h"\n#include "../pto-worker.h"\n' >"$tree/pto/process/a.c"
echo '#include <glib.h>' >"$tree/sim/a.c"
echo '#include "../pto-worker.h"' >"$tree/pto/mpi/a.c"
echo '#include "../core/engine.h"' >"$tree/pto/api/a.h"
echo '#include <pto/core/engine.h>' >"$tree/pto/tools/a.c"
printf '#include <pto/pto.h>\n#include "../pto-worker.h"\n' >"$tree/pto/seeds/a.h"
printf '#include "tensor.h"\n  #include "../../pto/pto-worker.h"\n' >"$tree/examples/one/a.c"
for name in $floors; do
  if [ "$(floor "$name" "$tree" | wc -l)" -eq 1 ]; then
    report "/pto/layers/finds-a-wrong-one/$name" ok
  else
    floor "$name" "$tree" | sed 's/^/# /'
    report "/pto/layers/finds-a-wrong-one/$name" bad
  fi
done
mkdir "$tree/circle"
echo '#include "b-private.h"' >"$tree/circle/a.c"
echo '#include "b.h"' >"$tree/circle/b.c"
printf '#include "b.h"\n#include "c.h"\n' >"$tree/circle/b-private.h"
touch "$tree/circle/b.h"
echo '#include "a.h"' >"$tree/circle/c.h"
touch "$tree/circle/a.h"
if circles "$tree/circle" | grep -q loop && [ -z "$(circles "$tree/sim")" ]; then
  report /pto/layers/finds-a-circle ok
else
  circles "$tree/circle" | sed 's/^/# /'
  report /pto/layers/finds-a-circle bad
fi
exit $status
