// SPDX-License-Identifier: Apache-2.0
// The audit of a built generation, before it gets its name: its files on disk are compared with the layout and with the
// RECORD of each wheel. Nothing missing, nothing extra, every size and every RECORD row right. Digests were checked
// while the bytes were written.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/layout/layout.hpp"

namespace sealift::installer {

// What was compared and found right.
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

// Throws Digest, naming the first path that differs, also when a file is another one than the one whose stamp or digest
// was right when it was linked. Then it renews the stamps of the linked files, whose time of change the link has moved.
Audit audit_generation(const Layout& layout, const bundle::Environment& environment,
                       const std::filesystem::path& generation, unsigned threads);

bundle::Json to_json(const Audit& audit);
Audit audit_from(bundle::JsonObject object);

}  // namespace sealift::installer
