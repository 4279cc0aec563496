// SPDX-License-Identifier: Apache-2.0
// See in_vllm.hpp. Sources: vllm/lora/peft_helper.py (_validate_features, validate_legal), vllm/config/lora.py.
#include "trainer/tuning/in_vllm.hpp"

#include <c10/util/StringUtil.h>

#include <algorithm>

namespace sealift::trainer {
namespace {

constexpr std::int64_t kDefaultRank = 16;  ///< max_lora_rank, which may be one of these
constexpr std::int64_t kLoraRanks[] = {16, 32, 64, 128, 256, 320, 512};

}  // namespace

std::vector<std::string> in_vllm(const LoraOptions& options) {
  std::vector<std::string> lines;
  const auto refused = [&](const std::string& why) {
    lines.push_back("note: vLLM does not load this job's adapter as it is: " + why +
                    "; merge_lora = true saves a merged model beside it, which it loads");
  };
  if (!options.modules_to_save.empty()) {
    refused("it takes none with modules_to_save (" + c10::Join(", ", options.modules_to_save) + ")");
  }
  if (options.dora) refused("most of its versions have no DoRA");
  auto rank = options.rank;
  for (const auto& [name, own] : options.patterns.ranks) rank = std::max(rank, own);
  const auto* most =
      std::find_if(std::begin(kLoraRanks), std::end(kLoraRanks), [&](auto each) { return each >= rank; });
  if (most == std::end(kLoraRanks)) {
    refused("its rank is " + std::to_string(rank) + ", above vLLM's largest max_lora_rank, 512");
  } else if (*most > kDefaultRank) {
    lines.push_back("note: vLLM loads an adapter of rank " + std::to_string(rank) + " with --max-lora-rank " +
                    std::to_string(*most));
  }
  if (!options.patterns.ranks.empty() || !options.patterns.alphas.empty()) {
    refused("it has rank_pattern or alpha_pattern, which vLLM does not read, so it would scale every module alike");
  }
  return lines;
}

}  // namespace sealift::trainer
