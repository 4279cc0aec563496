// SPDX-License-Identifier: Apache-2.0
// Umbrella of the bundle half: what both sides of the gap must agree on, room by room, in dependency order. Start here;
// the bytes themselves are described in bundle/FORMAT.md, the bodies are in the source tree's folder bundle/.
#pragma once

// The order is the message.
// clang-format off

// Core: bytes, digests, paths, files
#include "sealift/bundle/core/error.hpp"               // every way to fail; codes double as exit codes
#include "sealift/bundle/core/bytes.hpp"               // spans, hex, base64
#include "sealift/bundle/core/html.hpp"                // text that cannot become a tag
#include "sealift/bundle/core/digest.hpp"              // SHA-256 and SM3 as values and as streams
#include "sealift/bundle/core/human_text.hpp"          // sizes and fingerprints as people read them
#include "sealift/bundle/core/version.hpp"             // version numbers that compare
#include "sealift/bundle/core/time.hpp"                // points in time, in one spelling
#include "sealift/bundle/core/safe_path.hpp"           // a path that cannot leave its root
#include "sealift/bundle/core/own_places.hpp"          // names that only entries of a bundle place
#include "sealift/bundle/core/fields.hpp"              // what a plain name is
#include "sealift/bundle/core/file.hpp"                // reading plain files of a medium
#include "sealift/bundle/core/mapped_file.hpp"         // a file of this machine as memory
#include "sealift/bundle/core/output_file.hpp"         // new files, never over existing ones
#include "sealift/bundle/core/byte_source.hpp"         // random access to bytes, wherever they come from
#include "sealift/bundle/core/parallel_for.hpp"        // one piece of work for each of many, by several threads

// Host: what the tools do on the machine that they run on
#include "sealift/bundle/host/interrupt.hpp"           // Ctrl-C and SIGTERM as an exception
#include "sealift/bundle/host/child_process.hpp"       // other programs, started and bounded
#include "sealift/bundle/host/progress.hpp"            // how far the work is, on stderr

// Manifest: what a bundle says of itself
#include "sealift/bundle/manifest/target.hpp"          // the machine a bundle is made for
#include "sealift/bundle/manifest/target_profile.hpp"  // the same as text that can be typed
#include "sealift/bundle/manifest/allowed_variables.hpp"  // which variables a bundle may set
#include "sealift/bundle/manifest/variables.hpp"       // what an environment sets for what runs in it
#include "sealift/bundle/manifest/manifest.hpp"        // everything about a bundle, as a plain value
#include "sealift/bundle/manifest/chunk_layout.hpp"    // where chunks begin, and what names an entry's content
#include "sealift/bundle/manifest/recovery_layout.hpp" // which bytes recovery data is of, and where it lies
#include "sealift/bundle/manifest/manifest_check.hpp"  // which values are a manifest
#include "sealift/bundle/manifest/manifest_json.hpp"   // its strict reader, and its writer
#include "sealift/bundle/manifest/hub_catalogue.hpp"   // which repositories of model hubs it carries
#include "sealift/bundle/manifest/image_catalogue.hpp" // which container images it carries
#include "sealift/bundle/manifest/inventory.hpp"       // what a prefix holds, for the packer of a delta

// Trust: who may sign what, and what a site accepts
#include "sealift/bundle/trust/algorithm.hpp"          // the kinds of signature: Ed25519, ECDSA, SM2
#include "sealift/bundle/trust/public_key.hpp"         // what a key says about a signature
#include "sealift/bundle/trust/private_key.hpp"        // signing
#include "sealift/bundle/trust/envelope.hpp"           // a signed document: DSSE on one line
#include "sealift/bundle/trust/root.hpp"               // who may sign what, with thresholds and revocations
#include "sealift/bundle/trust/role_signatures.hpp"    // whether signatures meet a role
#include "sealift/bundle/trust/trust_state.hpp"        // what a site remembers of trust
#include "sealift/bundle/trust/root_chain.hpp"         // from the pinned root to the newest
#include "sealift/bundle/trust/acceptance.hpp"         // withdrawn, rollback, time
#include "sealift/bundle/trust/seal.hpp"               // the signed file: roots, then the manifest
#include "sealift/bundle/trust/trust_folder.hpp"       // a trust state on disk, in two copies

// Payload: chunks, volumes and their checks
#include "sealift/bundle/payload/chunk_buffer.hpp"     // memory for one chunk, on whole pages
#include "sealift/bundle/payload/volumes.hpp"          // where volumes are looked for, and whom to ask
#include "sealift/bundle/payload/payload_reader.hpp"   // volumes -> checked chunks
#include "sealift/bundle/payload/chunk_digester.hpp"   // the digests of chunks before there is a payload
#include "sealift/bundle/payload/bundle_folder.hpp"    // what lies in the folder, compared with the manifest
#include "sealift/bundle/payload/payload_writer.hpp"   // bytes -> volumes and chunk list
#include "sealift/bundle/payload/recovery_writer.hpp"  // a payload -> what mends it

// Archive: tar and zip
#include "sealift/bundle/archive/archive_tree.hpp"     // what an archive has named so far, and where its links lead
#include "sealift/bundle/archive/tar.hpp"              // the tar that we write and read
#include "sealift/bundle/archive/zip_member.hpp"       // one file of a zip
#include "sealift/bundle/archive/zip.hpp"              // what a zip holds, and the bytes of its members

// Wheel: Python packages as they were published
#include "sealift/bundle/wheel/wheel_name.hpp"         // file names, project names and versions of wheels
#include "sealift/bundle/wheel/scheme.hpp"             // the kinds of places of its files
#include "sealift/bundle/wheel/wheel_places.hpp"       // what a wheel may place, and what not
#include "sealift/bundle/wheel/wheel.hpp"              // what a wheel holds and where it goes
#include "sealift/bundle/wheel/patched_wheel.hpp"      // a wheel without what the target has of it
#include "sealift/bundle/wheel/wheel_patch.hpp"        // how such a one is made of two wheels
#include "sealift/bundle/wheel/installed_path.hpp"     // the path of each of its files in a generation
#include "sealift/bundle/wheel/package_owners.hpp"     // one wheel for each package folder

// Native: ELF files and shared libraries
#include "sealift/bundle/native/elf.hpp"               // what the dynamic linker would read
#include "sealift/bundle/native/elf_symbols.hpp"       // what it defines, and what others must define for it
#include "sealift/bundle/native/gpu_code.hpp"          // which GPUs run the CUDA code in it
#include "sealift/bundle/native/host_libraries.hpp"    // which libraries a site has itself
#include "sealift/bundle/native/libc_version.hpp"      // which glibc a libc.so.6 is
#include "sealift/bundle/native/gpu_models.hpp"        // the compute capability of a GPU by its name
#include "sealift/bundle/native/system_libraries.hpp"  // which libraries belong to the target

// The face: open, verify, write
#include "sealift/bundle/open_bundle.hpp"              // a folder that claims to hold a bundle, and its seal
#include "sealift/bundle/verified_bundle.hpp"          // the only gate: open -> verify -> VerifiedBundle
#include "sealift/bundle/damaged_payload.hpp"          // what of a bad medium is right, and what recovery data gives back
#include "sealift/bundle/bundle_writer.hpp"            // entries -> a signed bundle folder
// clang-format on
