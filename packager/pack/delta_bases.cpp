// SPDX-License-Identifier: Apache-2.0
// The highest version first, since a delta is most often made for the one before it; then whatever still lacks.
#include "packager/pack/delta_bases.hpp"

#include <algorithm>
#include <set>

#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// Names of store items.
using Items = std::set<std::string>;

struct Beside {
  fs::path folder;
  std::uint64_t version = 0;
  bool same_name = false;
  Items items;
};

Items needed_by(const bundle::Manifest& delta) {
  Items needed;
  for (const bundle::Entry& entry : delta.entries) {
    if (entry.absent) needed.insert(bundle::store_item_name(entry));
    if (entry.encoding == bundle::Encoding::Patch) needed.insert(entry.base.hex());
  }
  return needed;
}

std::vector<Beside> bundles_in(const fs::path& folder, const bundle::Manifest& delta,
                               const bundle::Digest& fingerprint) {
  std::vector<Beside> all;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored) || entry.path().filename() == delta.stem()) continue;
    try {
      const bundle::VerifiedBundle verified =
          bundle::verify(bundle::open(entry.path()), {.state = {.pinned = fingerprint}}, bundle::system_time());
      const bundle::Manifest& manifest = verified.manifest();
      Beside beside{.folder = entry.path(), .version = manifest.version, .same_name = manifest.name == delta.name};
      for (const bundle::Entry& carried : manifest.entries)
        if (!carried.absent && carried.encoding != bundle::Encoding::Patch)
          beside.items.insert(bundle::store_item_name(carried));
      all.push_back(std::move(beside));
    } catch (const bundle::Error&) {  // no bundle of this root, or a damaged one
    }
  }
  std::sort(all.begin(), all.end(), [](const Beside& a, const Beside& b) {
    return std::pair(a.same_name, a.version) > std::pair(b.same_name, b.version);
  });
  return all;
}

}  // namespace

std::vector<fs::path> delta_bases(const bundle::Manifest& delta, const fs::path& folder,
                                  const bundle::Digest& fingerprint) {
  const Items needed = needed_by(delta);
  const std::vector<Beside> all = bundles_in(folder, delta, fingerprint);
  const auto has_all = [&](const Beside& one) {
    return std::includes(one.items.begin(), one.items.end(), needed.begin(), needed.end());
  };
  if (const auto alone = std::find_if(all.begin(), all.end(), has_all); alone != all.end()) return {alone->folder};
  Items left = needed;
  std::vector<fs::path> chosen;
  for (const Beside& one : all) {
    const std::size_t before = left.size();
    std::erase_if(left, [&](const std::string& item) { return one.items.contains(item); });
    if (left.size() < before) chosen.insert(chosen.begin(), one.folder);
  }
  return left.empty() ? chosen : std::vector<fs::path>();
}

}  // namespace sealift::packager
