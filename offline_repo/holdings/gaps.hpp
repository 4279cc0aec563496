// SPDX-License-Identifier: Apache-2.0
// What a site does not serve although it lies there: a stream of which no version is current, so that clients are told
// 404 for its names, and files that a current delta leaves out and nothing else carries.
// A bad bundle is another matter (HeldBundle::why); a gap is what good bundles leave open.
#pragma once

#include <string>
#include <vector>

#include "offline_repo/holdings/held_bundle.hpp"
#include "sealift/bundle/trust/root.hpp"

namespace sealift::offline_repo {

struct Gap {
  bundle::Stream stream;
  InBoth what;                          // without the stream's name
  std::vector<std::string> about = {};  // NAME-VERSION of each bundle that it names
  std::vector<std::string> kept = {};   // of bundles that could be made current, the highest version first
  InBoth next;                          // the command that mends it

  // For people, on one line.
  InBoth said() const;
  std::string line() const { return said().english; }
};

// In the order of the streams. Bundles that were named have no stream that could lack a version, only files.
std::vector<Gap> gaps_of(const Held& held);

}  // namespace sealift::offline_repo
