// SPDX-License-Identifier: Apache-2.0
// See served_file.hpp. sealift-pack stores wheels and models as they are published, so a refusal here is rare.
#include "offline_repo/catalogue/served_file.hpp"

#include <string>

namespace sealift::offline_repo {

ServedFile served_file(const std::shared_ptr<const bundle::VerifiedBundle>& in, const bundle::Entry& entry,
                       const char* what) {
  if (entry.encoding != bundle::Encoding::Identity)
    throw bundle::Error(bundle::ErrorCode::CannotCheck,
                        {.what = std::string(what) + " is stored compressed, so no range of it can be served",
                         .where = in->manifest().stem() + ":" + entry.path.text(),
                         .expected = std::string(what) + " stored as it was published",
                         .next = "pack the bundle again with this version of sealift-pack"});
  return {.size = entry.size, .sha256 = entry.sha256, .in = in, .entry = &entry};
}

}  // namespace sealift::offline_repo
