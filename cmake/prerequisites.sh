#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need, once: Debian's packages by apt, uv from PyPI, ISA-L as a static library, and a
# Python environment with torch to build against. Everything but Debian's packages lands in build/prerequisites. Safe to run again.
# What an index gives is taken by the SHA-256 that cmake/hashes has for it, and nothing else is; of Debian's packages apt
# checks the archive's signature.
#   cmake/prerequisites.sh tools     to build the packager, installer and repository: no torch, no tests
#   cmake/prerequisites.sh air-gap   the same as tools, and what samples/air_gap.sh needs: torch, what makes a bare host
#   cmake/prerequisites.sh ms-swift  the same as air-gap, and what makes the Qwen of its --with-ms-swift
#   cmake/prerequisites.sh package   the same as tools, and what makes the packages of `cmake --workflow --preset package`
#   cmake/prerequisites.sh build     the same as package, and to build everything, with most tests
#   cmake/prerequisites.sh tests     all of the above, and what the rest of the tests starts: clusters' launchers, container
#                                    engines, clients of the repository, shells
#   cmake/prerequisites.sh sanitizers  the same as build, and what tests/train/sanitizers.sh compiles with
#   cmake/prerequisites.sh aarch64   the same as tools, and what the preset aarch64 and its test need: 220 MB
set -eu
cd "$(dirname "$0")/.."

kUv=uv==0.13.8
kTorch=torch==2.11.0
kReaders="safetensors==0.8.0 numpy==2.4.6"  # Python's reader of what is exported, for the tests
kHeaders="nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85"  # what the headers of torch's CUDA runtime include, and its wheels do not have
kClients="pdm[locked]==2.29.3 poetry==2.5.1 modelscope[datasets]==1.40.2"  # of the repository; pip and uv are there already
kOlderClients="huggingface_hub==0.20.3 huggingface_hub==0.36.0 modelscope==1.28.0"  # which sites still have, each in an environment of its own
kPackers="scikit-build-core==1.1.2"  # makes the wheels
kEngines="containerd podman conmon crun libyajl2 libsubid4 libgpgme11"  # 38 MB to download
kIsal=isal==1.8.0                           # Python's binding carries the sources of ISA-L 2.31.1; Debian has no libisal.a
kIsalBuild="setuptools==84.2.1 setuptools-scm==10.3.4"  # what its metadata is read with
kIsalParts='crc igzip erasure_code'
kIsalHash=sha256:124233e9a31a62030a07aafd48c26689561926f4e10417ed3ea46c211218f2b4
where=build/prerequisites

# The system's certificates, since a network that intercepts TLS makes only those known. Variables that are set come first.
export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1  # newer and older uv
export UV_PYTHON_DOWNLOADS=never          # interpreters are Debian's
system_certificates=/etc/ssl/certs/ca-certificates.crt
trust_system() {  # pip
  PIP_CERT=${PIP_CERT:-${REQUESTS_CA_BUNDLE:-${SSL_CERT_FILE:-$system_certificates}}}
  if [ -f "$PIP_CERT" ]; then export PIP_CERT; else unset PIP_CERT; fi
}

say() { printf '%s\n' "prerequisites: $*" >&2; }

install_packages() {
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  say "installing Debian's packages:$missing"
  as_root=
  [ "$(id -u)" -eq 0 ] || as_root=sudo
  $as_root apt-get update -q >&2
  # shellcheck disable=SC2086  # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    -o APT::Keep-Downloaded-Packages=false $missing >&2
}

# Packages into an environment: by_hash PYTHON NAME [OPTION...], of cmake/hashes/NAME.txt.
by_hash() {
  python=$1 name=$2
  shift 2
  # A cache beside it, so that gigabytes are linked and not copied.
  "$where/uv/bin/uv" pip install -q --cache-dir "$where/uv-cache" --require-hashes --python "$python" "$@" \
    -r "cmake/hashes/$name.txt" >&2
  rm -rf "$where/uv-cache"
}

# A folder is complete when its stamp names what it was made from; anything else is made anew.
complete() { [ "$(cat "$where/$1.stamp" 2>/dev/null)" = "$2" ]; }
stamp() { printf '%s\n' "$2" > "$where/$1.stamp"; }

install_uv() {
  complete uv "$kUv" && return 0
  say "installing $kUv into $where/uv"
  rm -rf "$where/uv"
  python3 -m venv "$where/uv"
  "$where/uv/bin/pip" install -q --disable-pip-version-check --require-hashes -r cmake/hashes/uv.txt >&2
  stamp uv "$kUv"
}

# igzip, its checksums and the erasure codes alone, with the licence beside them. Elsewhere and for another machine than
# this one: install_isal FOLDER PREFIX_OF_ITS_TOOLS.
install_isal() {
  folder=${1:-isal} tools=${2:-}
  complete "$folder" "$kIsal $kIsalParts" && return 0
  say "building ISA-L from $kIsal into $where/$folder"
  rm -rf "${where:?}/$folder" "$where/isal-build"
  mkdir -p "$where/$folder/include/isa-l" "$where/$folder/lib" "$where/isal-build"
  printf '%s --hash=%s\n' "$kIsal" "$kIsalHash" > "$where/isal-build/wanted"
  # pip asks a source for its metadata; what that takes would come without hashes if pip fetched it.
  "$where/uv/bin/pip" install -q --disable-pip-version-check --require-hashes -r cmake/hashes/isal_build.txt >&2
  "$where/uv/bin/pip" download -q --disable-pip-version-check --no-cache-dir --no-deps --no-binary isal --require-hashes \
    --no-build-isolation -r "$where/isal-build/wanted" -d "$where/isal-build" >&2
  tar -xzf "$where"/isal-build/isal-*.tar.gz -C "$where/isal-build" --strip-components=4 --wildcards '*/src/isal/isa-l'
  for_machine=
  [ -z "$tools" ] || for_machine="host_cpu=${tools%%-*} arch=${tools%%-*} CC=${tools}gcc-12 AR=${tools}ar"
  # shellcheck disable=SC2086  # a list of words
  make -s -C "$where/isal-build" -f Makefile.unx units="$kIsalParts" $for_machine lib >/dev/null
  cp "$where/isal-build/include/igzip_lib.h" "$where/isal-build/include/crc.h" \
    "$where/isal-build/include/erasure_code.h" "$where/isal-build/include/gf_vect_mul.h" "$where/$folder/include/isa-l"
  # libcrypto.a has a function of this name too, of its own field.
  "${tools}objcopy" --redefine-sym gf_mul=isal_gf_mul "$where/isal-build/bin/isa-l.a" "$where/$folder/lib/libisal.a"
  cp "$where/isal-build/LICENSE" "$where/$folder"
  rm -rf "$where/isal-build"
  stamp "$folder" "$kIsal $kIsalParts"
}

# Debian's arm64 packages by an apt of their own, unpacked and not installed: this machine's packages stay as they are, no
# program of theirs runs, and nobody has to be root.
#   install_arm64 NAME alone|with-needs PACKAGES...
install_arm64() {
  complete "aarch64/$1" "$*" && return 0
  say "unpacking Debian's arm64 packages into $where/aarch64/$1"
  state=$PWD/$where/aarch64/apt
  rm -rf "$state" "${where:?}/aarch64/$1"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$where/aarch64/$1"
  : > "$state/status"
  apt="apt-get -q -o Dir::State=$state -o Dir::State::status=$state/status -o Dir::Cache=$state/cache \
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none -o APT::Sandbox::User="
  words=$*
  name=$1 needs=$2
  shift 2
  $apt update >&2
  if [ "$needs" = alone ]; then
    (cd "$state/cache/archives" && $apt download "$@" >&2)
  else
    $apt install -y --download-only --no-install-recommends "$@" >&2
  fi
  for deb in "$state"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$where/aarch64/$name"; done
  rm -rf "$state"
  stamp "aarch64/$name" "$words"
}

# What the preset aarch64 links; for its test a bare system, and one with a Python to carry.
install_aarch64() {
  install_arm64 static alone libssl-dev libzstd-dev zlib1g-dev libutf8proc-dev libsquashfs-dev libfuse3-dev
  install_isal aarch64/isal aarch64-linux-gnu-
  install_arm64 bare with-needs base-files dash coreutils
  install_arm64 python with-needs python3.11 libstdc++6 libgcc-s1 zlib1g
}

install_torch() {
  complete torch "$kTorch" && return 0
  say "installing $kTorch and what it needs into $where/torch (2.7 GB to download)"
  rm -rf "$where/torch"
  "$where/uv/bin/uv" venv -q --python 3.11 "$where/torch" >&2
  by_hash "$where/torch/bin/python" torch
  rm -f "$where/readers.stamp"
  stamp torch "$kTorch"
}

install_beside_torch() {
  complete readers "$kReaders $kHeaders" && return 0
  say "installing $kReaders $kHeaders into $where/torch"
  by_hash "$where/torch/bin/python" beside_torch
  stamp readers "$kReaders $kHeaders"
}

# transformers, PEFT, TRL and bitsandbytes, beside torch and not in it: what is built against must not depend on them.
install_peers() {
  complete peers "$(cat tests/train/peers.txt)" && return 0
  say "installing tests/train/peers.txt into $where/peers"
  rm -rf "$where/peers"
  by_hash "$where/torch/bin/python" peers --no-deps --target "$where/peers"
  stamp peers "$(cat tests/train/peers.txt)"
}

# Programs and libraries that sealift-repo is held to, in an environment of their own.
install_clients() {
  complete clients "$kClients" && return 0
  say "installing $kClients into $where/clients"
  rm -rf "$where/clients"
  "$where/uv/bin/uv" venv -q --python 3.11 "$where/clients" >&2
  by_hash "$where/clients/bin/python" clients
  stamp clients "$kClients"
}

install_packers() {
  complete packers "$kPackers" && return 0
  say "installing $kPackers into $where/packers"
  rm -rf "$where/packers"
  "$where/uv/bin/uv" venv -q --python 3.11 "$where/packers" >&2
  by_hash "$where/packers/bin/python" packers
  stamp packers "$kPackers"
}

install_older_clients() {
  complete older "$kOlderClients" && return 0
  say "installing $kOlderClients into $where/older"
  rm -rf "$where/older"
  for one in $kOlderClients; do
    place=$where/older/${one%%==*}-${one##*==}
    "$where/uv/bin/uv" venv -q --python 3.11 "$place" >&2
    by_hash "$place/bin/python" "${one%%==*}-${one##*==}"
  done
  stamp older "$kOlderClients"
}

# containerd and podman, which pull from sealift-repo: unpacked only, so that no service is started for a test.
install_engines() {
  complete engines "$kEngines" && return 0
  say "unpacking Debian's $kEngines into $where/engines"
  rm -rf "$where/engines" "$where/engines-debs"
  mkdir -p "$where/engines" "$where/engines-debs"
  # shellcheck disable=SC2086  # a list of words
  (cd "$where/engines-debs" && apt-get download -q -o APT::Sandbox::User= $kEngines >&2) || {
    say "Debian's server does not give them; the test of container engines will say that it is left out"
    return 0
  }
  for deb in "$where"/engines-debs/*.deb; do dpkg-deb -x "$deb" "$where/engines"; done
  rm -rf "$where/engines-debs"
  stamp engines "$kEngines"
}

what=${1:-build}
case $what in tools | air-gap | ms-swift | package | build | tests | sanitizers | aarch64) ;; *)
  say "unknown argument '$what'; known: tools, air-gap, ms-swift, package, build, tests, sanitizers, aarch64"
  exit 2 ;;
esac
for_any_of() {  # whether what is installed is for one of these
  for one in "$@"; do [ "$one" != "$what" ] || return 0; done
  return 1
}

mkdir -p "$where"
install_packages g++ cmake ninja-build make nasm ca-certificates python3 python3-venv \
  libcli11-dev nlohmann-json3-dev libfmt-dev libzstd-dev zlib1g-dev libssl-dev \
  libboost1.81-dev libboost-url1.81-dev libutf8proc-dev libyaml-cpp-dev libsquashfs-dev libfuse3-dev libcurl4-openssl-dev patchelf bubblewrap
if [ "$what" = sanitizers ]; then
  install_packages libclang-rt-19-dev llvm-19  # of llvm the symbolizer, by which suppressions know functions
  what=build
fi
if for_any_of air-gap ms-swift build tests; then install_packages libgloo-dev doctest-dev; fi  # CMake looks for both
if for_any_of air-gap ms-swift tests; then install_packages mmdebstrap uidmap iproute2 util-linux file; fi
if for_any_of package build tests; then install_packages zstd rpm; fi
if for_any_of build tests; then
  install_packages git zstd openssl curl \
    clang clang-format libclang-rt-dev libarchive-tools unzip \
    clang-19  # the fuzzers, the archivers that our readers are held to, and what compiles the tests over LibTorch
  install_packages fuse3 squashfs-tools cryptsetup-bin  # what mounts images, and shows, makes and checks them beside ours
  install_packages dnf createrepo-c rpm gpg gpg-agent  # what resolves, makes and signs the tests' rpm packages
fi
if for_any_of tests; then
  install_packages ccache  # what tests/run.sh takes compilations from, where it finds it
  install_packages openmpi-bin slurm-client slurmctld slurmd munge
  install_packages ansible-core skopeo umoci  # what the tests of samples/many_machines start
  install_packages zsh fish tcsh lmod  # what a prefix is activated in
fi
if for_any_of aarch64; then install_packages g++-12-aarch64-linux-gnu qemu-user-static; fi
trust_system  # only now is the package ca-certificates there
install_uv
install_isal
if for_any_of aarch64; then install_aarch64; fi
if for_any_of air-gap ms-swift build tests; then
  install_torch
  install_beside_torch
fi
if for_any_of package build tests; then install_packers; fi
if for_any_of ms-swift build tests; then install_peers; fi
if for_any_of build tests; then
  install_clients
  install_older_clients
fi
if for_any_of tests; then install_engines; fi
