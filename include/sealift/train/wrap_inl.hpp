// SPDX-License-Identifier: Apache-2.0
// The bodies of wrap.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/wrap.hpp>

#include <fnmatch.h>

namespace sealift::train {

SEALIFT_BODY bool Candidate::matches(const std::string& pattern) const {
  const bool matched = fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
  if (patterns) (*patterns)[pattern] |= matched;
  return matched;
}

SEALIFT_BODY UnitChoice::UnitChoice(bool is_unit) {
  if (is_unit) options.emplace();
}

SEALIFT_BODY Wrap by_block(UnitOptions options) {
  return [options = std::move(options)](const Candidate& each) -> UnitChoice {
    if (!each.is_block) return false;
    return options;
  };
}

SEALIFT_BODY Wrap by_block_group(std::int64_t blocks) {
  TORCH_CHECK(blocks >= 1, "by_block_group(", blocks, "): a unit holds at least 1 block");
  return [blocks](const Candidate& each) -> UnitChoice {
    if (!each.block) return false;
    return UnitOptions{.shared = "blocks from " + std::to_string(*each.block / blocks * blocks)};
  };
}

SEALIFT_BODY Wrap one_in(std::int64_t k) {
  TORCH_CHECK(k >= 1, "one_in(", k, "): expected at least 1");
  return [k](const Candidate& each) { return each.block && *each.block % k == 0; };
}

SEALIFT_BODY Wrap by_size(std::int64_t min_numel) {
  return [min_numel](const Candidate& each) { return each.numel >= min_numel; };
}

SEALIFT_BODY Wrap by_path(std::string pattern, UnitOptions options) {
  return [pattern = std::move(pattern), options = std::move(options)](const Candidate& each) -> UnitChoice {
    if (!each.matches(pattern)) return false;
    return options;
  };
}

SEALIFT_BODY Wrap root_only() {
  return [](const Candidate&) { return false; };
}

}  // namespace sealift::train
