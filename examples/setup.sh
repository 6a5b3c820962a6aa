# setup.sh: what does this machine need before libpto can be built here, and how is it built? (sourced)
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Debian 12 or newer; as root or through sudo. Does only what is missing and says only what it does.

# The packages of every build; tests/run.sh adds its own.
build_packages="gcc g++ meson ninja-build pkg-config gettext libglib2.0-dev libgnutls28-dev libjson-glib-dev
  libgirepository1.0-dev libncurses-dev gobject-introspection python3 python3-gi python3-numpy"

fail () {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# $@: packages. Installs those that are missing.
install_packages () {
  missing=
  for package in "$@"; do
    case $(dpkg-query -W -f '${Status}' "$package" 2> /dev/null) in
      *"ok installed") ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -n "$missing" ] || return 0
  command -v apt-get > /dev/null || fail "no apt-get here; install by hand:$missing"
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null || fail "not root and no sudo; as root: apt-get install$missing"
    as_root=sudo
  fi
  set -- $missing
  printf 'Installing %d packages ... ' $#
  log=$(mktemp)
  # env: what comes out of an expansion is a command, never an assignment.
  apt_get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get"
  if $apt_get update > "$log" 2>&1 && $apt_get install -y --no-install-recommends "$@" >> "$log" 2>&1; then
    echo done
    rm -f "$log"
  else
    echo failed
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "these packages could not be installed:$missing"
  fi
}

# Prints the address that apt fetches Debian from.
debian_mirror () {
  mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2> /dev/null | grep -v security | head -n 1)
  [ -n "$mirror" ] || mirror=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' /etc/apt/sources.list)
  echo "$mirror"
}

# $1: build directory; further arguments are meson's. Configures once.
configure () {
  directory=$1
  shift
  log=$directory.log
  mkdir -p "$(dirname "$directory")"
  if [ ! -f "$directory/build.ninja" ]; then
    rm -rf "$directory/meson-private" # of a setup that has failed; other builds may be below it
    meson setup "$directory" "$source_root" "$@" > "$log" 2>&1 || {
      tail -n 30 "$log" >&2
      fail "meson setup failed"
    }
    rm -f "$log"
  fi
}

# $1: build directory; further arguments are the targets, without any: all. Builds what changed.
build () {
  directory=$1
  shift
  log=$directory.log
  if ninja -C "$directory" -n "$@" 2> /dev/null | grep -q 'no work to do'; then
    rm -f "$log"
    return 0
  fi
  printf 'Building libpto in %s ... ' "$directory"
  start=$(date +%s)
  ninja -C "$directory" "$@" > "$log" 2>&1 || {
    echo failed
    grep -E 'error|FAILED|warning' "$log" | head -n 40 >&2
    tail -n 10 "$log" >&2
    fail "the build failed"
  }
  echo "done ($(($(date +%s) - start)) s)"
  rm -f "$log"
}
