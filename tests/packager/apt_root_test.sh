#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real Debian packages on the whole way: resolved by apt for this machine's suite, packed, signed by gpg, installed by the
# real installer, and from there by apt, which checks that signature, in a bare system that has no network. Needs root,
# gpg, a Debian mirror and the package index; by label `network`.
#   apt_root_test.sh BIN UV [PACKAGE PROGRAM]    PROGRAM: what proves that PACKAGE works; default: make, make
set -euo pipefail
. "$(dirname "$(realpath "$0")")/real_bundle.sh"
package=${3:-make} program=${4:-make}
require_bare_system

start_job tools '"pip"' '"pip"' > job.toml
cat >> job.toml << END
[apt]
suite = "$suite"
packages = ["$package"]
END
export GNUPGHOME=$work/gpg
mkdir -m 700 gpg
gpg --batch --quiet --passphrase '' --quick-generate-key 'Packages <packages@site.invalid>' ed25519 sign never
pack tools --no-rehearsal --apt-key "$(gpg --list-secret-keys --with-colons | awk -F: '$1 == "fpr" { print $10; exit }')"
gpgconf --kill all
bare_system
[ ! -e "root/usr/bin/$program" ]
install_bundle tools "$work/root/opt/env"
apt_from_bundle "$package"
unshare --net chroot root "$program" --version
