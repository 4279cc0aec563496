// SPDX-License-Identifier: Apache-2.0
// One bundle that the server was told of, or found, and what became of it: the value that verification ends in and that
// views, metrics and the status page are made from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "offline_repo/catalogue/catalogue.hpp"
#include "sealift/bundle/trust/root.hpp"

namespace sealift::offline_repo {

enum class HeldState {
  Current,  // in the merged index, in its channel, and by its own address
  Kept,     // by its own address alone, to go back to
  LeftOut   // not served
};

std::string_view name_of(HeldState state);

// Why a bundle is not current.
struct Reason {
  enum class Kind {
    None,       // nothing keeps it from being current
    Older,      // than one that was accepted; `text`: what verification said
    Switched,   // an operator switched to `version`, which is not here or no good
    NotChosen,  // another version is served, `text`
    SameAs,     // the same bundle is in the folder `text`
    Refused     // `text`: what verification, or reading it, said
  };

  Kind kind = Kind::None;
  std::string text = {};
  std::uint64_t version = 0;

  // For people, on one line; empty where there is none. What verification said of a bundle that is refused is English.
  InBoth fact() const;
};

struct HeldBundle {
  std::filesystem::path place;  // as it was named, or in the watched folder
  HeldState state = HeldState::LeftOut;
  Contents contents = {};                     // null for one that is left out
  Reason reason = {};                         // why it is not current
  bool watched = false;                       // found in the watched folder
  std::optional<bundle::Error> refused = {};  // what verification said, of one that is left out for that

  // The reason, and what would make it current where one command does.
  InBoth why_said() const;
  std::string why() const { return why_said().english; }
  // NAME-VERSION; of one that is left out its folder's name.
  std::string stem() const;
  // Its channel and name; of one that has contents.
  bundle::Stream stream() const;
};

using Held = std::vector<HeldBundle>;

// A line for people on each bundle that has another state, or another reason for it, than before.
std::vector<std::string> changes(const Held& before, const Held& after);

}  // namespace sealift::offline_repo
