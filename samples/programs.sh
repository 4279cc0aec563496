#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether Sealift's programs are installed here, and where: sourced by the scripts beside it.
# An archive, a .deb, a .rpm and a wheel all have these scripts in share/doc/sealift/samples, and the programs in bin. A
# checkout that has built nothing yet takes those on the PATH, if they are of its version; else it builds its own.
samples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# programs_of BIN: the folder of all programs of the installation with this BIN. Where they do not start, theirs is the last line.
programs_of() {
  "$1/sealift-pack" --version > /dev/null || exit
  if [ -d "$1/../lib/sealift/bin" ]; then cd "$1/../lib/sealift/bin"; else cd "$1"; fi  # an archive, a .deb, a .rpm; a wheel
  pwd
}
installed=  # the folder of installed programs; empty: the checkout's own are built
if [ -z "${SEALIFT_TOOLS_BUILD:-}" ]; then
  if [ -x "$samples/../../../../bin/sealift-pack" ]; then
    installed=$(programs_of "$samples/../../../../bin")
  elif [ ! -d "$samples/../build/tools" ] && found=$(command -v sealift-pack) &&
    [ "$("$found" --version | head -1)" = "sealift-pack $(cat "$samples/../VERSION")" ]; then
    installed=$(programs_of "$(dirname "$(readlink -f "$found")")")
  fi
fi
# needs PROGRAM=PACKAGE...: ends with one line that names the packages of missing programs.
needs() {
  local missing= pair
  for pair in "$@"; do command -v "${pair%%=*}" > /dev/null || missing="$missing ${pair#*=}"; done
  [ -z "$missing" ] || { echo "${0##*/}: programs are missing; next: apt-get install$missing" >&2; exit 7; }
}
# bring_uv FOLDER: uv on the PATH, from PyPI into FOLDER where it is neither there nor beside the programs.
bring_uv() {
  PATH=$PATH:$installed
  command -v uv > /dev/null || {
    python3 -m venv "$1" && "$1/bin/pip" install -q --disable-pip-version-check uv==0.13.8
    PATH=$PATH:$1/bin
  }
  export PATH
}
