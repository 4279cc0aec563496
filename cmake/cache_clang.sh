#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler launcher: cache_clang.sh CCACHE CLANG ARGUMENTS... compiles by CCACHE, but for precompiled headers.
# A precompiled header of clang names this checkout's folders, so it is compiled here and never taken from a cache. What
# uses it can be: by the digest of what was precompiled, which ccache reads in place of the header.
set -eu
ccache=$1 clang=$2
shift 2
case " $* " in *" -x c++-header "*) ;; *) exec "$ccache" "$clang" "$@" ;; esac
"$clang" "$@"

for argument in "$@"; do case $argument in *.gch | *.pch) header=$argument ;; esac; done
text=$header.text
{ "$clang" --version; printf '%s\n' "$*"; } > "$text"
of_cc1=
for argument in "$@"; do  # the same without -Xclang -emit-pch
  shift
  case $of_cc1$argument in
    -Xclang) of_cc1=yes; continue ;;
    yes-emit-pch) ;;
    yes*) set -- "$@" -Xclang "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
  of_cc1=
done
mv "$header" "$header.made"  # or it would be read in place of the header's text
"$clang" "$@" -o - -E >> "$text"
mv "$header.made" "$header"
sed "s#${CCACHE_BASEDIR:-/nowhere}/##g" "$text" | sha256sum > "$header.sum"
rm "$text"
