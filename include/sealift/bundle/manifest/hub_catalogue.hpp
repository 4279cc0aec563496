// SPDX-License-Identifier: Apache-2.0
// Which repositories of model hubs a bundle carries: their names, commits, and where each of their files lies in it.
// The packager writes it as one signed entry, sealift-repo answers hubs' clients by it. It is a file of the environment
// like any other, so neither the manifest nor an older installer knows of it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kHubCatalogueEntry = "catalogue/hubs.json";           // its path in the bundle
inline constexpr std::string_view kHubCataloguePlace = "share/sealift/catalogue.json";  // below a generation's root
inline constexpr std::uint64_t kMaxHubCatalogue = std::uint64_t{64} << 20;              // bytes, as the seal's

// Whose routes know the repository by this name.
enum class HubKind { HuggingFace, ModelScope };

enum class RepositoryKind { Model, Dataset };

struct HubName {
  HubKind hub = HubKind::HuggingFace;
  RepositoryKind kind = RepositoryKind::Model;
  std::string id = {};  // "org/name" or "name"

  auto operator<=>(const HubName&) const = default;
};

struct HubRepositoryFile {
  SafePath path;   // in the repository
  SafePath entry;  // in the bundle
  std::uint64_t size = 0;
  Digest sha256;

  bool operator==(const HubRepositoryFile&) const = default;
};

// One repository at one commit, or what a job chose of it.
struct HubRepository {
  HubName name;
  std::string commit;                    // 40 hexadecimal digits; of ModelScope, which has none, a branch or tag
  std::vector<std::string> revisions;    // branches and tags that stand for the commit; sorted
  std::vector<HubRepositoryFile> files;  // sorted by path

  bool operator==(const HubRepository&) const = default;
};

using HubCatalogue = std::vector<HubRepository>;  // sorted by name and commit, each once

// Whether the text is a repository's id: one or two parts of at most 96 letters, digits, '.', '_', '-', none of which
// begins with '.'. Nothing in it needs quoting in a path or a URL.
bool is_hub_id(std::string_view text);

// One line of JSON. Sorts everything; what stands twice for one repository and commit becomes one, the first entry of
// a path counts. Throws Usage when two files of one path differ, or when a name is malformed.
std::string write_hub_catalogue(HubCatalogue repositories);

// Throws Format for anything that write_hub_catalogue does not write, above all for a file that is not, with this size
// and digest, an entry of `manifest` of the kind File.
HubCatalogue parse_hub_catalogue(std::string_view text, const Manifest& manifest, const std::string& where);

}  // namespace sealift::bundle
