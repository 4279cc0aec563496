#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Applies a bundle; when another job is changing the same prefix, waits until that has ended. sealift-install itself never
# waits: an operator wants to know who is at work. A job would rather wait; the second one finds
# "already installed" and goes on. A holder that was killed holds nothing, so what is waited for is always alive.
#   wait_and_apply.sh INSTALLER BUNDLE --prefix PREFIX --fingerprint sha256:...    any arguments of `apply`
# SEALIFT_WAIT: how many seconds to wait at most; default 3600. Exits with apply's own code.
set -eu
installer=$1
shift
waited=0
while :; do
  code=0
  said=$("$installer" apply "$@" --json) || code=$?   # errors are JSON on stdout too, and words on stderr
  # 10 is a conflict; only the lock's names the prefix's lock file, and only that one passes by waiting.
  case $code:$said in
    10:*'/lock"'*) [ "$waited" -lt "${SEALIFT_WAIT:-3600}" ] || exit 10 ;;
    *) printf '%s\n' "$said"; exit "$code" ;;
  esac
  sleep 5
  waited=$((waited + 5))
done
