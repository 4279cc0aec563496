#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds what runs inside for aarch64 targets into build/aarch64/bin: sealift-install with audit.sh, sealift-start,
# sealift-launch, sealift-repo, each static. On x86-64 Debian 12.
set -eu
cd "$(dirname "$0")/.."
cmake/prerequisites.sh aarch64
cmake --preset aarch64
cmake --build build/aarch64 --target sealift-install sealift-start sealift-launch sealift-repo
