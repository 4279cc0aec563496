// SPDX-License-Identifier: Apache-2.0
// One small file; see variables.hpp.
#include "installer/generations/variables.hpp"

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

bundle::Variables variables_of(const std::filesystem::path& generation) {
  constexpr std::uint64_t kMaxFile = 1 << 20;
  const std::filesystem::path file = generation / bundle::kVariablesPlace;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  return bundle::parse_variables(bundle::read_text(file, kMaxFile), file.string());
}

}  // namespace sealift::installer
