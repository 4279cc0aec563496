# SPDX-License-Identifier: Apache-2.0
# Sourced with BIN UV by the tests that pack from the real index: a work folder that goes when the test ends, the head of
# a job, and the way from a job to a prefix. A process that the test starts in the background is $server.
bin=$(realpath "$1") uv=$(realpath "$2") here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2> /dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"  # apt's own user reads below it
cd "$work"
export SEALIFT_CACHE=$work/cache
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

# A job for this system's own Python; more tables may follow. start_job NAME REQUIREMENTS IMPORTS, both in TOML's spelling.
start_job() {
  cat << END
name = "$1"
version = 1
[target]
arch = "x86_64"
glibc = "2.36"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = [$2]
imports = [$3]
END
}

# job.toml -> out/NAME-1. pack NAME [OPTION OF create…]
pack() {
  "$bin/sealift-pack" keygen keys > fingerprint
  "$bin/sealift-pack" lock job.toml --uv "$uv"
  "$bin/sealift-pack" create "$1.lock.toml" --root keys/root.1.json --key keys/release.key -o out "${@:2}"
}

# out/NAME-1 -> PREFIX. install_bundle NAME PREFIX
install_bundle() { "$bin/sealift-install" apply "out/$1-1" --prefix "$2" --fingerprint "$(cat fingerprint)"; }

# Skips the test unless a bare system can be made and entered.
require_bare_system() {
  command -v mmdebstrap > /dev/null && command -v unshare > /dev/null || { echo "skipped: needs mmdebstrap and unshare"; exit 77; }
  [ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
}

# A bare system in $work/root, into which apt installs PACKAGE… from the prefix /opt/env there, without a network, as the
# packager's README says; the system's own sources would want one.
bare_system() { mmdebstrap --quiet --variant=minbase "$suite" root; }
apt_from_bundle() {
  rm -rf root/etc/apt/sources.list root/etc/apt/sources.list.d/*
  local key=/opt/env/current/apt/archive-key.asc trust=trusted=yes
  [ ! -e "root$key" ] || trust=signed-by=$key
  echo "deb [$trust] file:/opt/env/current/apt ./" > root/etc/apt/sources.list.d/sealift.list
  unshare --net chroot root sh -ec "apt-get update; apt-get install -y --no-install-recommends $*"
}
