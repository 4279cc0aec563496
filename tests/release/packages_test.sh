#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The archive, the .deb, the .rpm and the wheels of this build: made twice with the same bytes, with the same programs
# inside, of one version, and asking of a system what is promised and no more. They stay in OUT for the other tests.
#   packages_test.sh BUILD/bin SOURCE OUT [PROGRAMS OF THE TRAINER]
set -euo pipefail
build=$(dirname "$1") source=$2 out=$3 trainer=${4:-}
fail() { echo "FAILED: $*" >&2; exit 1; }
for tool in zstd rpmbuild bsdtar "$source/build/prerequisites/packers/bin/python"; do
  command -v "$tool" > /dev/null || { echo "left out: $tool is not here; cmake/prerequisites.sh tests"; exit 77; }
done
version=$(cat "$source/VERSION")
unset SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out" && mkdir -p "$out"

# package FOLDER GENERATORS [ARGUMENTS]: with quick compression, which is all that differs from a release.
package() {
  cpack --config "$build/CPackConfig.cmake" -G "$2" -B "$1" -D SEALIFT_ZSTD_LEVEL=3 -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip \
    -D CPACK_RPM_COMPRESSION_TYPE=gzip "${@:3}" > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "cpack -G $2"; }
  rm -rf "$1/_CPack_Packages"
}
package "$out" "External;DEB;RPM"
(umask 077; export TZ=Asia/Shanghai LC_ALL=C.UTF-8 HOME=$work; package "$work/again" "External;DEB;RPM")
diff "$out/SHA256SUMS" "$work/again/SHA256SUMS" || fail "made again, a package has other bytes"
(cd "$out" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS is not that of the packages"
archive=$out/sealift-$version-linux-x86_64.tar.zst deb=$out/sealift_${version}_amd64.deb rpm=$out/sealift-$version-1.x86_64.rpm
wheel=$(echo "$out/sealift-$version"-py3-none-manylinux_2_*_x86_64.whl)
for file in "$archive" "$deb" "$rpm" "$wheel"; do
  grep -q "  ${file##*/}$" "$out/SHA256SUMS" || fail "SHA256SUMS has no ${file##*/}"
done
[ -z "$trainer" ] || grep -q "  sealift_trainer-$version-cp3" "$out/SHA256SUMS" || fail "no wheel of the trainer"

# Its time is the release's day, or what SOURCE_DATE_EPOCH says.
day=$(sed -n "s/^## $version (\(.*\))$/\1/p" "$source/CHANGELOG.md")
days() { tar --utc -tvf "$1" | awk '{ print $4 }' | sort -u; }
[ "$(days "$archive")" = "$day" ] || fail "the archive's files are not of $day: $(days "$archive")"
[ "$(rpm -qp --qf '%{BUILDTIME:day}' "$rpm")" = "$(LC_ALL=C date -u -d "$day" '+%a %b %d %Y')" ] || fail "the .rpm is not of $day"
SOURCE_DATE_EPOCH=1000000000 package "$work/dated" External
[ "$(days "$work/dated/${archive##*/}")" = 2001-09-09 ] || fail "SOURCE_DATE_EPOCH does not say the time"
tar -tvf "$archive" | awk '$2 != "0/0" { exit 1 }' || fail "the archive names an account of the building machine"

# The same programs everywhere, so that who checked one package knows the others.
mkdir -p "$work/archive" "$work/deb" "$work/rpm" "$work/wheel"
tar -C "$work/archive" --strip-components=1 -xf "$archive"
dpkg-deb -x "$deb" "$work/deb"
bsdtar -C "$work/rpm" -xf "$rpm"
bsdtar -C "$work/wheel" -xf "$wheel"
for program in sealift-pack sealift-install sealift-repo sealift-launch sealift-start audit.sh; do
  one=$work/archive/lib/sealift/bin/$program
  [ -x "$one" ] || fail "the archive has no program $program"
  for other in "$work/deb/usr/lib/sealift/bin" "$work/rpm/usr/lib/sealift/bin" "$work/wheel/sealift-$version.data/scripts"; do
    cmp "$one" "$other/$program" || fail "$program is another one there"
  done
  ! strings -a "$one" | grep -F -e "$source" -e "$build" || fail "$program names a folder of the building machine"
  case $program in
    sealift-start | audit.sh) continue ;;
    sealift-pack) ;;
    *) ! readelf -d "$one" | grep NEEDED || fail "$program is not static" ;;
  esac
  [ "$("$one" --version | head -1)" = "$program $version" ] || fail "$program is not of version $version"
  [ "$("$work/archive/bin/$program" --version | head -1)" = "$program $version" ] || fail "bin/$program of the archive does not start it"
  cmp "$work/deb/usr/bin/$program" "$one" || fail "$program cannot be started by its name from the .deb"
  [ "$(readlink "$work/rpm/usr/bin/$program")" = "/usr/lib/sealift/bin/$program" ] || fail "nor from the .rpm"
done

# What sealift-pack asks of a system, as each package says it: glibc, and libcurl of any distribution.
pack=$work/archive/lib/sealift/bin/sealift-pack
others=$(readelf -d "$pack" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vxE 'libcurl\.so\.4|libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2' || true)
[ -z "$others" ] || fail "sealift-pack needs $others"
! readelf -V "$pack" | grep CURL || fail "sealift-pack asks for the libcurl of one distribution"
floor=$(objdump -T "$pack" | grep -o 'GLIBC_2\.[0-9]*' | sed 's/GLIBC_//' | sort -Vu | tail -1)
[ "$(dpkg-deb -f "$deb" Depends)" = "libc6 (>= $floor), libcurl4 (>= 7.85)" ] || fail "the .deb depends on $(dpkg-deb -f "$deb" Depends)"
rpm -qp --requires "$rpm" | grep -qxF "libc.so.6(GLIBC_$floor)(64bit)" || fail "the .rpm does not ask for glibc $floor"
rpm -qp --requires "$rpm" | grep -qxF '(libcurl >= 7.85 or libcurl4 >= 7.85)' || fail "the .rpm does not ask for libcurl"
[ "$(rpm -qp --recommends "$rpm" | tr '\n' ' ')" = "bubblewrap ca-certificates patchelf python3 " ] || fail "the .rpm recommends $(rpm -qp --recommends "$rpm")"
case $wheel in *-manylinux_${floor/./_}_x86_64.whl) ;; *) fail "the wheel's tag is not glibc $floor's: $wheel" ;; esac

# The archive on a system that it is not for: one line, of ours.
mkdir "$work/fakes"
refused() { # refused PROGRAM SAYS WORDS: with a PROGRAM of the system that says SAYS, one line with WORDS
  local status=0
  printf '#!/bin/sh\necho "%s"\n' "$2" > "$work/fakes/$1" && chmod +x "$work/fakes/$1"
  PATH=$work/fakes:$PATH "$work/archive/bin/sealift-pack" lock job.toml > "$work/said" 2>&1 || status=$?
  rm "$work/fakes/$1"
  cat "$work/said"
  [ "$status" = 8 ] && [ "$(wc -l < "$work/said")" = 1 ] && grep -qF "$3" "$work/said" || fail "not one line with: $3"
}
refused uname aarch64 "this archive is for x86_64, and this machine is aarch64; next: pack on a machine of x86_64, for targets of either"
refused getconf 'glibc 2.31' "this system has glibc 2.31, and sealift-pack needs $floor; next: take Debian 12"
refused getconf undefined "this system has glibc of no known version, and sealift-pack needs $floor"

for page in README.md CHANGELOG.md LICENSE docs/operating.md docs/pictures/report.png samples/first_bundle.sh licences/libc6-dev licences/isa-l; do
  [ -s "$work/archive/share/doc/sealift/$page" ] && [ -s "$work/deb/usr/share/doc/sealift/$page" ] || fail "no page $page"
done
# Links from page to page; those to sources are for a checkout.
python3 "$source/.ci/links.py" "$work/archive/share/doc/sealift" > "$work/links" || true
grep -q . "$work/links" || fail "nothing was said of the pages' links"
! grep -E '\.(md|png|svg)(#[^ ]*)?( leads nowhere|: no such heading)' "$work/links" || fail "the archive's pages lead to pages that it has not"
for place in archive deb/usr rpm/usr "wheel/sealift-$version.data/data"; do
  "$work/$place/share/doc/sealift/samples/air_gap.sh" --help > "$work/said" || fail "air_gap.sh of $place does not start"
done
echo "packages of $version: the same bytes twice, the same programs four times"
