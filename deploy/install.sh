#!/bin/sh
# Installs Gristmill from a release's tarball, after a check against SHA256SUMS in the same directory.
#
# usage: install.sh [--prefix DIR] [TARBALL]      [default: ~/.local, and the tarball next to this script]
set -eu

prefix="${HOME:-}/.local"
if [ "${1:-}" = --prefix ]; then
    prefix=${2:?install.sh: --prefix needs a directory}
    shift 2
fi
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
tarball=${1:-}
if [ -z "$tarball" ]; then
    for tarball in "$here"/gristmill-*.tar.gz; do :; done
fi
[ -f "$tarball" ] || { echo "install.sh: the tarball $tarball does not exist; name one" >&2; exit 1; }
name=$(basename -- "$tarball")
sums=$(dirname -- "$tarball")/SHA256SUMS
[ -f "$sums" ] || { echo "install.sh: SHA256SUMS must be next to $tarball; nothing was installed" >&2; exit 1; }
expected=$(awk -v name="$name" '$2 == name { print $1 }' "$sums")
found=$(sha256sum -- "$tarball" | awk '{ print $1 }')
if [ -z "$expected" ] || [ "$expected" != "$found" ]; then
    echo "install.sh: $name has the sum $found, and SHA256SUMS says ${expected:-nothing of it}; nothing was installed" >&2
    exit 1
fi
unpacked=$(mktemp -d)
trap 'rm -rf -- "$unpacked"' EXIT
tar -xzf "$tarball" -C "$unpacked" --strip-components=1
mkdir -p -- "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/doc/gristmill" "$prefix/share/bash-completion/completions"
# Replaced by a rename: a running program keeps its file.
cp -- "$unpacked/gristmill" "$prefix/bin/.gristmill-new"
chmod 755 "$prefix/bin/.gristmill-new"
mv -f -- "$prefix/bin/.gristmill-new" "$prefix/bin/gristmill"
cp -- "$unpacked"/man/* "$prefix/share/man/man1/"
cp -- "$unpacked/completions/gristmill.bash" "$prefix/share/bash-completion/completions/gristmill"
cp -- "$unpacked"/LICENSE* "$prefix/share/doc/gristmill/"
"$prefix/bin/gristmill" --version
echo "installed in $prefix/bin"
