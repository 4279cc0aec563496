// SPDX-License-Identifier: Apache-2.0
// One small file; see variables.hpp.
#include "installer/activation/variables.hpp"

#include "installer/activation/site_settings.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

bundle::Variables variables_of(const std::filesystem::path& generation) {
  constexpr std::uint64_t kMaxFile = 1 << 20;
  const std::filesystem::path file = generation / bundle::kVariablesPlace;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  return bundle::parse_variables(bundle::read_text(file, kMaxFile), file.string());
}

// apply's own bytecode would not be read if Python were sent to a cache. sealift-start sees to that too, but an older
// bundle brings an older one.
bundle::Variables variables_for(const Prefix& prefix, const GenerationRecord& record) {
  bundle::Variables variables = variables_of(prefix.generation(record.number));
  variables.merge(variables_of(site_settings(prefix)));
  if (!record.bytecode) variables["PYTHONPYCACHEPREFIX"] = std::string(bundle::kCacheWord) + "/sealift/pycache";
  return variables;
}

}  // namespace sealift::installer
