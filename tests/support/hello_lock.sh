# SPDX-License-Identifier: Apache-2.0
# Locks of environments that need neither a network nor an index: an interpreter that is only a file, and programs.
# Sourced; works in the current folder and in $SEALIFT_CACHE.
#   hello_interpreter                                     makes the interpreter, once
#   hello_lock NAME VERSION CHANNEL FILE=PLACE...         writes NAME-VERSION.lock.toml, of version 1 to 9
_digest() { sha256sum "$1" | cut -d' ' -f1; }

hello_interpreter() {
  mkdir -p "$SEALIFT_CACHE/sha256"
  # Not by GNU tar: it writes device numbers into every header, and Sealift takes one spelling.
  python3 - <<'END'
import io, os, tarfile
with tarfile.open("interpreter.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
    member = tarfile.TarInfo("bin/python3.11")
    member.mode, member.size = 0o755, 10
    archive.addfile(member, io.BytesIO(b"#!/bin/sh\n"))
os.truncate("interpreter.tar", 4 * 512)  # and no filling behind the end
END
  cp interpreter.tar "$SEALIFT_CACHE/sha256/$(_digest interpreter.tar)"
}

hello_lock() {
  cat >"$1-$2.lock.toml" <<END
format = 1
name = "$1"
version = $2
channel = "$3"
created = "2026-01-0${2}T00:00:00Z"
python = "3.11"
imports = []
payload_digest = "sha256"
[target]
arch = "$(uname -m)"
glibc = "2.17"
glibc_floor = "2.17"
[interpreter]
description = "none"
version = "3.11.0"
sha256 = "$(_digest interpreter.tar)"
size = $(stat -c %s interpreter.tar)
libraries = []
END
  _lock=$1-$2.lock.toml
  shift 3
  for _program in "$@"; do
    _file=${_program%%=*}
    printf '[[program]]\nsource = "%s"\nsha256 = "%s"\nsize = %s\ninto = "%s"\nexecutable = true\nfrom_wheels = []\n' \
      "$_file" "$(_digest "$_file")" "$(stat -c %s "$_file")" "${_program#*=}" >>"$_lock"
  done
}
