// SPDX-License-Identifier: Apache-2.0
// What a new root would refuse, told before a site accepts it: a revocation that takes out more than was meant is
// noticed outside, and not when the first machine cannot install.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/trust/envelope.hpp"
#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::installer {

struct RootVerdict {
  enum class Kind {
    Prefix,      // whether its trust folder follows to this root
    Generation,  // whether its bundle would be taken in again; what is installed stays and runs
    Bundle,      // whether it would be installed and served
  };

  Kind kind = Kind::Bundle;
  std::string place;    // a prefix's or a bundle's folder
  std::string name;     // NAME-VERSION, of a generation with its number; of a prefix empty
  std::string refusal;  // empty: it stays accepted
};

// Judges `places` by `next`, the state in which `roots` leave the site: prefixes, bundles, and folders of bundles such
// as a repository watches. Older versions than the newest are no reason here, since a way back may need them. Changes
// nothing. Throws Missing for any other place.
std::vector<RootVerdict> try_root(const bundle::TrustState& next, const std::vector<bundle::Envelope>& roots,
                                  const std::vector<std::filesystem::path>& places, bundle::Time now);

}  // namespace sealift::installer
