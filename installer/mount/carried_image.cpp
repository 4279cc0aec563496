// SPDX-License-Identifier: Apache-2.0
// See carried_image.hpp.
#include "installer/mount/carried_image.hpp"

#include "bundle/core/shell_word.hpp"
#include "sealift/bundle/open_bundle.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

bool names_bundle(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() == bundle::kSealSuffix && fs::is_regular_file(path, ignored)) return true;
  for (fs::directory_iterator it(path, ignored), end; !ignored && it != end; it.increment(ignored))
    if (it->path().extension() == bundle::kSealSuffix) return true;
  return false;
}

const bundle::Entry& carried_image(const bundle::VerifiedBundle& bundle) {
  if (const bundle::Entry* const image = bundle.manifest().image()) return *image;
  throw bundle::Error(bundle::ErrorCode::Missing,
                      {.what = "the bundle carries no image that can be mounted",
                       .where = bundle.folder().string(),
                       .expected = "one whose job has [squashfs]",
                       .next = "make one: sealift-install image " + bundle::shell_word(bundle.folder().string()) +
                               " -o FILE; then: sealift-install mount FILE DIR --digest what it printed"});
}

}  // namespace sealift::installer
