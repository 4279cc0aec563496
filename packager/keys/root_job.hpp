// SPDX-License-Identifier: Apache-2.0
// `sealift-pack root create`: a TOML file that people write -> the root that its key holders then sign. The next root
// keeps the revocations of the one before, so that none is lost by forgetting it.
#pragma once

#include <filesystem>
#include <optional>

#include "sealift/bundle/trust/root.hpp"

namespace sealift::packager {

struct RootJobOptions {
  std::filesystem::path job;
  std::filesystem::path previous;  // the root before; empty: this is root 1
  std::filesystem::path out;       // empty: root.N.json beside the job
};

struct RootJobResult {
  std::filesystem::path file;
  bundle::Root root;
  bundle::Digest fingerprint;
};

// Reads the job and writes the unsigned root. Throws Usage naming file, line and key; Conflict when the file exists.
RootJobResult create_root(const RootJobOptions& options);

}  // namespace sealift::packager
