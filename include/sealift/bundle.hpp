// SPDX-License-Identifier: Apache-2.0
// Umbrella of the bundle half: what both sides of the gap must agree on, in dependency order. Start here; the bytes
// themselves are described in bundle/FORMAT.md.
#pragma once

// clang-format off: the order is the message

#include "sealift/bundle/error.hpp"            // every way to fail; codes double as exit codes
#include "sealift/bundle/bytes.hpp"            // spans, hex, base64
#include "sealift/bundle/openssl.hpp"          // the door to OpenSSL
#include "sealift/bundle/digest.hpp"           // SHA-256 and SM3 as values and as streams
#include "sealift/bundle/safe_path.hpp"        // a path that cannot leave its root
#include "sealift/bundle/json.hpp"             // strict JSON; the door to nlohmann
#include "sealift/bundle/target.hpp"           // the machine a bundle is made for
#include "sealift/bundle/manifest.hpp"         // everything about a bundle, as a plain value
#include "sealift/bundle/signature.hpp"        // Ed25519 keys
#include "sealift/bundle/seal.hpp"             // the signed file: DSSE around the manifest
#include "sealift/bundle/trust.hpp"            // pinned keys, and a seal checked against them
#include "sealift/bundle/file.hpp"             // reading plain files of a medium
#include "sealift/bundle/byte_source.hpp"      // random access to bytes, wherever they come from
#include "sealift/bundle/zstd.hpp"             // the door to zstd
#include "sealift/bundle/payload_reader.hpp"   // volumes -> checked chunks
#include "sealift/bundle/verified_bundle.hpp"  // the only gate: open -> verify -> VerifiedBundle
#include "sealift/bundle/payload_writer.hpp"   // bytes -> volumes and chunk list
#include "sealift/bundle/tar.hpp"              // the tar that we write and read
#include "sealift/bundle/bundle_writer.hpp"    // entries -> a signed bundle folder
#include "sealift/bundle/zip.hpp"              // zip as wheels use it; the door to zlib
#include "sealift/bundle/wheel.hpp"            // what a wheel holds and where it goes
#include "sealift/bundle/elf.hpp"              // what the dynamic linker would read
// clang-format on
