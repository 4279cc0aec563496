// SPDX-License-Identifier: Apache-2.0
// A manifest that is accepted is written and read back as the same value, in one spelling.
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    const Manifest manifest = parse_manifest(text, "manifest");
    const std::string written = write_manifest(manifest);
    must(parse_manifest(written, "written") == manifest, "what was written reads back");
    must(write_manifest(parse_manifest(written, "written")) == written, "there is one spelling");
    for (const Entry& entry : manifest.entries) {
      must(entry.offset + entry.stored_size <= manifest.payload.size, "an entry lies in the payload");
      must(!entry.absent || ((manifest.base || manifest.image() != nullptr) && manifest.installer_level >= 2),
           "only a delta, and a bundle with an image, lacks an entry");
      must(entry.absent || entry.encoding != Encoding::Patch ||
               (entry.kind == EntryKind::Wheel && manifest.base && manifest.installer_level >= 5),
           "only a delta has patches, of wheels");
      must(entry.verity.has_value() == (entry.kind == EntryKind::Squashfs), "an image alone has a root hash");
      must(entry.kind != EntryKind::Squashfs ||
               (manifest.image() == &entry && !entry.absent && entry.encoding == Encoding::Identity &&
                entry.size != 0 && entry.size % 4096 == 0 && manifest.installer_level >= 8),
           "there is one image, of whole blocks");
      must(manifest.find(entry.path) == &entry, "an entry is found by its path");
    }
  });
}
