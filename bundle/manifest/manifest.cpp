// SPDX-License-Identifier: Apache-2.0
// Looks into a manifest; see manifest.hpp.
#include "sealift/bundle/manifest/manifest.hpp"

#include <algorithm>

namespace sealift::bundle {

const Entry* Manifest::find(const SafePath& path) const {
  const auto found = std::lower_bound(entries.begin(), entries.end(), path,
                                      [](const Entry& entry, const SafePath& wanted) { return entry.path < wanted; });
  return found != entries.end() && found->path == path ? &*found : nullptr;
}

const Entry* Manifest::image() const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [](const Entry& entry) { return entry.kind == EntryKind::Squashfs; });
  return found != entries.end() ? &*found : nullptr;
}

bool carries_image_alone(const Manifest& manifest) {
  return !manifest.base && manifest.image() != nullptr &&
         std::any_of(manifest.entries.begin(), manifest.entries.end(), [](const Entry& entry) { return entry.absent; });
}

std::vector<std::string> wheels_built(const Manifest& manifest, WheelBuild build) {
  std::vector<std::string> names;
  for (const Entry& entry : manifest.entries)
    if (entry.kind == EntryKind::Wheel && entry.build == build)
      names.push_back(entry.path.text().substr(entry.path.text().rfind('/') + 1));
  return names;
}

std::vector<std::string> packages_shared(const Manifest& manifest) {
  std::vector<std::string> shared;
  for (const Environment::Placement& placement : manifest.environment.placements)
    for (const SafePath& folder : placement.shared) {
      const std::string& path = placement.entry.text();
      shared.push_back(path.substr(path.rfind('/') + 1) + ": " + folder.text());
    }
  return shared;
}

std::string few_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return names.empty() ? "none" : text;
}

std::uint64_t needed_installer_level(const Manifest& manifest) {
  if (manifest.image() != nullptr) return 8;
  const auto& placements = manifest.environment.placements;
  if (std::any_of(placements.begin(), placements.end(),
                  [](const auto& placement) { return !placement.shared.empty(); }))
    return 7;
  if (std::any_of(manifest.entries.begin(), manifest.entries.end(),
                  [](const Entry& entry) { return entry.build != WheelBuild::None; }))
    return 6;
  if (std::any_of(manifest.entries.begin(), manifest.entries.end(),
                  [](const Entry& entry) { return !entry.absent && entry.encoding == Encoding::Patch; }))
    return 5;
  if (manifest.payload.recovery) return 5;
  if (!manifest.gpu_code.empty() || !manifest.overruled.empty()) return 4;
  if (!manifest.environment.startup_files.empty()) return 3;
  const bool leaves_out = std::any_of(placements.begin(), placements.end(),
                                      [](const auto& placement) { return !placement.left_out.empty(); });
  return manifest.base || leaves_out || manifest.environment.runtime || !manifest.driver_floor.empty() ? 2 : 0;
}

}  // namespace sealift::bundle
