// SPDX-License-Identifier: Apache-2.0
// Reads root files as one chain; see root_files.hpp.
#include "packager/keys/root_files.hpp"

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Envelope;

std::vector<Envelope> read_root_files(const std::vector<fs::path>& files) {
  std::vector<Envelope> chain;
  for (const fs::path& file : files)
    for (Envelope& root : bundle::parse_roots(bundle::read_text(file, bundle::kMaxSealSize), file.string()))
      chain.push_back(std::move(root));
  return chain;
}

std::vector<Envelope> read_roots(const std::vector<fs::path>& files) {
  std::vector<Envelope> chain = read_root_files(files);
  bundle::read_root_chain(chain, files.empty() ? "no root" : files.back().string());
  return chain;
}

}  // namespace sealift::packager
