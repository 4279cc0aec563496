// SPDX-License-Identifier: Apache-2.0
// Compares a built generation on disk with what it should be, before it gets its name: nothing missing, nothing extra,
// every size right, every RECORD row true. Digests were checked while the bytes were written.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

// What was found to hold.
struct Audit {
  std::uint64_t wheels = 0;
  std::uint64_t files = 0;
  std::uint64_t links = 0;
  std::uint64_t folders = 0;
  std::uint64_t bytes = 0;
  std::uint64_t record_rows = 0;  // rows of all RECORD files, each compared with its file
  std::uint64_t shared = 0;       // files that are hard links into the store

  bool operator==(const Audit&) const = default;
  Audit& operator+=(const Audit& other);
};

// Throws Digest or Conflict naming the first path that is not as it should be.
Audit audit_generation(const Layout& layout, const bundle::Environment& environment, const std::filesystem::path& root,
                       unsigned threads);

bundle::Json to_json(const Audit& audit);
Audit audit_from(bundle::JsonObject object);

}  // namespace sealift::installer
