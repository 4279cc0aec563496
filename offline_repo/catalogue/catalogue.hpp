// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer: to pip and uv projects and their wheels, to the clients of model hubs repositories,
// to those of registries images, to apt and dnf packages.
// Made once at start-up. A request is then a lookup in it, so no text of a request ever becomes a path.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/catalogue/apt_repositories.hpp"
#include "offline_repo/catalogue/bundle_artifact.hpp"
#include "offline_repo/catalogue/cards.hpp"
#include "offline_repo/catalogue/entry_list.hpp"
#include "offline_repo/catalogue/hub_repositories.hpp"
#include "offline_repo/catalogue/images.hpp"
#include "offline_repo/catalogue/in_both.hpp"
#include "offline_repo/catalogue/last_check.hpp"
#include "offline_repo/catalogue/rpm_repositories.hpp"
#include "offline_repo/catalogue/served_file.hpp"

namespace sealift::offline_repo {

struct IndexedWheel : ServedFile {
  std::string file_name;
  std::string version;                         // as METADATA spells it
  std::optional<std::string> requires_python;  // likewise
  std::string metadata;                        // the METADATA file, byte for byte
  bundle::Digest metadata_sha256;
  std::string uploaded;  // when the first bundle that has it was made; RFC 3339, UTC

  std::string project() const;  // normalized
};

// What one bundle carries, read once for every catalogue that it is in.
struct BundleContents {
  std::shared_ptr<const bundle::VerifiedBundle> in;
  std::vector<IndexedWheel> wheels = {};
  bundle::HubCatalogue repositories = {};
  bundle::ImageCatalogue images = {};
  std::shared_ptr<const EntryList> entries = {};  // all of its files; null in tests alone
  std::shared_ptr<BundleArtifact> artifact = {};  // the bundle itself, for registries' clients; null in tests alone
  std::vector<std::string> patched = {};          // paths of wheels that travel as patches and so cannot be served
  Cards cards = {};
  std::shared_ptr<LastCheck> check = std::make_shared<LastCheck>();
  std::set<std::string> rotten = {};  // paths of entries with bytes that are wrong on the medium: served by no view
};
using Contents = std::shared_ptr<const BundleContents>;

struct Project {
  std::string name;                            // normalized
  std::map<std::string, IndexedWheel> wheels;  // by file name

  std::set<std::string> versions() const;
};

// A bundle that is served by its own address alone.
struct KeptVersion {
  std::string stem;  // NAME-VERSION
  std::string channel;
  InBoth why;  // why it is not current

  auto operator<=>(const KeptVersion&) const = default;
};

// What lies beside the bundles of a catalogue, for its page for people.
struct Surroundings {
  std::vector<InBoth> gaps;  // a line each (holdings/gaps.hpp)
  std::vector<KeptVersion> kept;

  auto operator<=>(const Surroundings&) const = default;
};

struct Catalogue {
  std::vector<std::string> bundles;                      // NAME-VERSION of each, as they were given
  std::map<std::string, Project, std::less<>> projects;  // by normalized name
  HubRepositories repositories;
  ImageRepositories images = {};
  AptRepositories apt = {};
  RpmRepositories rpms = {};
  EntryLists entries = {};  // of bundles with one name the newest
  // By the name of a repository, and by version.
  std::map<std::string, std::map<std::string, std::shared_ptr<BundleArtifact>, std::less<>>, std::less<>> artifacts =
      {};
  std::vector<InBoth> left_out;  // a line for people on each commit or wheel that is not served (not_served.hpp)
  std::vector<std::shared_ptr<const bundle::VerifiedBundle>> sources = {};  // the bundles, in their order
  std::vector<std::shared_ptr<const LastCheck>> checks = {};                // of each of them
  Surroundings around = {};
  Cards cards = {};

  std::size_t wheel_count() const;
  // Of one of `sources`; nothing of any other bundle.
  std::optional<LastCheck::Times> last_check(const bundle::VerifiedBundle* in) const;
  // Null when there is none; `name` in any spelling.
  const Project* find_project(std::string_view name) const;
  // Null unless a wheel has both this name and this digest. A wheel's file name begins with its project's.
  const IndexedWheel* find_wheel(std::string_view sha256, std::string_view file_name) const;
};

// Without what a delta does not carry. Reads only the chunks that hold METADATA and the catalogue of hubs. Throws
// CannotCheck when a file is stored compressed, so that no range of it can be served, Format for a bad catalogue,
// Conflict when the bundle disagrees with itself.
// A wheel that one of `before` has with the same content is not read again.
Contents read_contents(std::shared_ptr<const bundle::VerifiedBundle> in, const std::vector<Contents>& before = {});

// The union of the bundles' wheels and repositories. Throws Conflict when two files have one name and different bytes;
// disagreements.hpp says so beforehand.
Catalogue catalogue_of(const std::vector<Contents>& bundles);
Catalogue make_catalogue(std::vector<bundle::VerifiedBundle> bundles);

}  // namespace sealift::offline_repo
