// SPDX-License-Identifier: Apache-2.0
// Each name is looked up once in a table of who has it, so that bundles of many thousand files cost no more than their
// names.
#include "offline_repo/catalogue/disagreements.hpp"

#include <map>
#include <unordered_map>
#include <utility>

#include "offline_repo/catalogue/not_served.hpp"

namespace sealift::offline_repo {

namespace {

// A name, and what a bundle has under it.
struct Claim {
  InBoth name;
  bundle::Digest sha256;
};
struct Holder {
  std::size_t bundle;
  bundle::Digest sha256;
};
using Pair = std::pair<std::size_t, std::size_t>;  // the lower place first

// A branch of ModelScope moves without a commit: bundles that were made at other times may differ.
InBoth file_of(const bundle::HubRepository& repository, const std::string& path, const std::string& created) {
  const std::string commit = repository.name.id + " at " + repository.commit;
  if (repository.name.hub == bundle::HubKind::ModelScope) return file_of_modelscope(path, commit, created);
  return repository.name.kind == bundle::RepositoryKind::Dataset ? file_of_data(path, commit)
                                                                 : file_of_model(path, commit);
}

std::vector<Claim> claims_of(const BundleContents& contents) {
  const bundle::Manifest& manifest = contents.in->manifest();
  std::vector<Claim> claims{{the_bundle(manifest.stem()), contents.in->identity()}};
  for (const IndexedWheel& wheel : contents.wheels) claims.push_back({the_wheel(wheel.file_name), wheel.sha256});
  for (const bundle::HubRepository& repository : contents.repositories)
    for (const bundle::HubRepositoryFile& file : repository.files)
      if (!manifest.find(file.entry)->absent)
        claims.push_back({file_of(repository, file.path.text(), manifest.created), file.sha256});
  return claims;
}

// The bundles that disagree, and about which name first.
std::map<Pair, InBoth> pairs_of(const std::vector<Contents>& bundles) {
  std::unordered_map<std::string, std::vector<Holder>> names;
  std::map<Pair, InBoth> pairs;
  for (std::size_t i = 0; i < bundles.size(); ++i)
    for (Claim& claim : claims_of(*bundles[i])) {
      std::vector<Holder>& holders = names[claim.name.english];
      for (const Holder& before : holders)
        if (before.sha256 != claim.sha256) pairs.try_emplace({before.bundle, i}, claim.name);
      holders.push_back({.bundle = i, .sha256 = claim.sha256});
    }
  return pairs;
}

bool is_older_version(const BundleContents& one, const BundleContents& other) {
  const bundle::Manifest &a = one.in->manifest(), &b = other.in->manifest();
  return a.name == b.name && a.channel == b.channel && a.version < b.version;
}

InBoth why_not(const InBoth& name, const BundleContents& other, bool newer) {
  return other_bytes(name, other.in->manifest().stem(), other.in->folder().string(), newer);
}

}  // namespace

std::vector<Disagreement> disagreements_of(const std::vector<Contents>& bundles) {
  const std::map<Pair, InBoth> pairs = pairs_of(bundles);
  std::map<std::size_t, InBoth> out;
  for (const auto& [pair, name] : pairs)
    for (const auto& [one, other] : {pair, Pair(pair.second, pair.first)})
      if (is_older_version(*bundles[one], *bundles[other])) out.try_emplace(one, why_not(name, *bundles[other], true));
  const std::map<std::size_t, InBoth> older = out;  // with what is out already nobody disagrees
  for (const auto& [pair, name] : pairs) {
    if (older.contains(pair.first) || older.contains(pair.second)) continue;
    out.try_emplace(pair.first, why_not(name, *bundles[pair.second], false));
    out.try_emplace(pair.second, why_not(name, *bundles[pair.first], false));
  }
  std::vector<Disagreement> all;
  for (const auto& [place, why] : out) all.push_back({.bundle = place, .why = why});
  return all;
}

}  // namespace sealift::offline_repo
