// SPDX-License-Identifier: Apache-2.0
// What the trust verbs print: the pinned and the accepted trust root, its roles and revocations, the versions seen.
// An operator compares this with what the key holders say, so digests are whole.
#pragma once

#include "bundle/core/json.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/upkeep/root_trial.hpp"

namespace sealift::installer {

bundle::Json json_of(const bundle::TrustState& state);
bundle::Json json_of(const TrustChange& change);
std::string text_of(const bundle::TrustState& state);

// For a run that changes nothing: `next` is the state that it would have led to.
bundle::Json json_of(const std::vector<RootVerdict>& verdicts, const bundle::TrustState& next, bool changes);
std::string text_of(const std::vector<RootVerdict>& verdicts);

}  // namespace sealift::installer
