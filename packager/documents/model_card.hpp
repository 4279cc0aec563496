// SPDX-License-Identifier: Apache-2.0
// What a repository's README states of its licence, in the block of YAML at its top that hubs read. Only two
// known keys are taken, and none is followed anywhere: the text is a stranger's.
// Source: the documentation of Hugging Face's hub, "Model Cards" and "Licenses"; spdx.org/licenses.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

inline constexpr std::size_t kMaxCardBlock = 64 << 10;  // bytes

// A licence as its component states it; nobody has judged it.
struct StatedLicence {
  std::string expression;          // of SPDX, where the name is one of its identifiers; then `names` is empty
  std::vector<std::string> names;  // else; fit to be shown, at most 20

  std::string text() const;  // "MIT", "qwen-research" or nothing
  bool operator==(const StatedLicence&) const = default;
};

// Empty where the block is missing, is larger than kMaxCardBlock, or has no licence.
StatedLicence read_card_licence(std::string_view readme);

}  // namespace sealift::packager
