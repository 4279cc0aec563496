#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Repositories for tests, made with the real tools: rpmbuild, rpmsign, createrepo_c and gpg.
#   make_rpms.sh DIR
# DIR/signed    alpha (needs beta), beta (with an epoch), gamma (recommends beta), needy (needs what nobody has), snapshot
#               (1.0^git5); packages and index signed by the key DIR/site.asc
# DIR/foreign.sig   the same index, signed by the other key
# DIR/other     plain, not signed; foreign, signed by DIR/other.asc alone; the index is not signed
set -euo pipefail
cd "$1"
for tool in rpmbuild rpmsign createrepo_c gpg; do
  command -v "$tool" > /dev/null || { echo "make_rpms.sh: $tool is not here; cmake/prerequisites.sh installs it" >&2; exit 1; }
done
export GNUPGHOME=$PWD/gnupg HOME=$PWD GPG_TTY=
mkdir -m 700 gnupg
trap 'gpgconf --kill gpg-agent || true' EXIT
for name in site other; do
  gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-gen-key "$name <$name@invalid>" rsa2048 sign never
  gpg --armor --export "$name" > "$name.asc"
done

# make FOLDER NAME EPOCH VERSION [LINE OF THE SPEC]
make() {
  cat > "$2.spec" << END
Name: $2
Epoch: $3
Version: $4
Release: 1
Summary: $2
License: MIT and Zlib
BuildArch: noarch
${5:-}
%description
$2
%install
mkdir -p %{buildroot}/usr/share/$2
echo $2 $4 > %{buildroot}/usr/share/$2/file
%files
/usr/share/$2
END
  SOURCE_DATE_EPOCH=1700000000 rpmbuild --quiet -bb --define "_topdir $PWD/build" --define "_rpmdir $PWD/$1" \
    --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' --define '_buildhost invalid' "$2.spec"
}
sign() { rpmsign --define "__gpg $(command -v gpg)" --define "_gpg_name $1" --addsign "${@:2}" > /dev/null 2> sign.log || { cat sign.log >&2; exit 1; }; }

make signed alpha 0 1.0 'Requires: beta >= 1:2'
make signed beta 1 2.0~rc1
make signed gamma 0 3 'Recommends: beta'
make signed needy 0 1 'Requires: epsilon'
make signed snapshot 0 '1.0^git5'
sign site signed/*.rpm
make other plain 0 1
make other foreign 0 1
sign other other/foreign-*.rpm
for folder in signed other; do createrepo_c --quiet --no-database "$folder"; done
gpg --batch --quiet --armor --local-user site --detach-sign signed/repodata/repomd.xml
gpg --batch --quiet --armor --local-user other --output foreign.sig --detach-sign signed/repodata/repomd.xml
