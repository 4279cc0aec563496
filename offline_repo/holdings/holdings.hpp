// SPDX-License-Identifier: Apache-2.0
// The bundles of a server: named ones and the ones of a watched folder, each verified, and of each stream
// the version to serve. Looks again whenever it is asked; the server then shows what it returns, as one step.
// A bad bundle is a value with a reason: it takes out nothing but itself.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "offline_repo/holdings/held_bundle.hpp"
#include "offline_repo/holdings/rotten_chunks.hpp"
#include "offline_repo/holdings/watched_folder.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::offline_repo {

struct HoldingsOptions {
  std::vector<std::filesystem::path> named;  // folders or seals; each of them is current
  std::filesystem::path folder;              // the watched one; empty: none
  std::filesystem::path trust;               // a trust folder, read at each look
  std::optional<bundle::Digest> fingerprint;
  bool allow_downgrade = false;
  const RottenChunks* rotten = nullptr;  // what has rotted meanwhile; null: nobody looks
};

// For one thread.
class Holdings {
 public:
  explicit Holdings(HoldingsOptions options) : options_(std::move(options)) {}

  // What there is now, or nothing when files, switches and trust are as they were at the last look. Unless `at_once`, a
  // new or changed folder is taken up when two looks in a row found it the same, since somebody may still be copying.
  // Throws what reading the trust, the switches or the watched folder itself throws; everything stays as it was then.
  std::optional<Held> look(bool at_once);

 private:
  struct Sight {
    bundle::TrustState trust;
    Switches switches;
    std::map<std::filesystem::path, std::string> places;  // with what sight_of says of each
    std::uint64_t rotten = 0;                             // RottenChunks::changes

    bool operator==(const Sight&) const = default;
  };
  struct Known {
    std::string sight;
    bundle::Digest identity;
    Contents contents;
    std::set<std::uint64_t> rotten = {};  // chunks
    Contents shown = {};                  // the contents without their files
  };

  Sight see() const;
  Sight settled(const Sight& seen) const;
  Held judge_all(const Sight& sight);
  HeldBundle judge(const std::filesystem::path& place, const Sight& sight, bool watched);
  Contents shown(Known& known);
  Contents contents_of(const std::filesystem::path& place, const std::string& sight, bundle::VerifiedBundle verified);

  const HoldingsOptions options_;
  std::optional<Sight> seen_, judged_;            // at the last look, and when it was last judged
  bundle::TrustState state_;                      // what the site has on disk, and what was seen since the start
  std::map<std::filesystem::path, Known> known_;  // good bundles, whose contents need not be read again
};

// Of each stream in the watched folder makes one version current: the one switched to, or else the highest that is no
// older than any seen before; with a delta those versions that it stands on. Pure: from states and reasons to others.
void choose_current(Held& held, const Switches& switches);

}  // namespace sealift::offline_repo
