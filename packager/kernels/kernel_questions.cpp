// SPDX-License-Identifier: Apache-2.0
// The table and its lookup; see kernel_questions.hpp. Each row was read in the wheel that it names; releases between
// two that were read are told as the older one.
#include "packager/kernels/kernel_questions.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sealift/bundle/core/version.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Version;

namespace {

struct Asked {
  const char* when;
  const char* repo;
};

struct Row {
  const char* package;
  Version first, before;                // of the package
  Version loader_first, loader_before;  // of kernels; others are as if they were not there
  std::vector<Asked> asked;
};

constexpr Version kNoEnd{.major = 1'000'000};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      // wheel transformers 4.57.6: modeling_utils.py, modeling_flash_attention_utils.py, integrations/mxfp4.py,
      // integrations/hub_kernels.py; setup's window of its extra.
      {"transformers",
       {.major = 4, .minor = 56},
       {.major = 5},
       {.minor = 6, .patch = 1},
       {.minor = 10},
       {{"attention \"flash_attention_2\" without flash-attn", "kernels-community/flash-attn"},
        {"attention \"flash_attention_3\"", "kernels-community/vllm-flash-attn3"},
        {"gpt-oss in mxfp4", "kernels-community/triton_kernels"},
        {"Mamba, FalconMamba", "kernels-community/causal-conv1d"}}},
      // wheel transformers 5.5.0: the same files, integrations/finegrained_fp8.py.
      {"transformers",
       {.major = 5},
       {.major = 5, .minor = 14},
       {.minor = 10, .patch = 2},
       kNoEnd,
       {{"attention \"flash_attention_2\" without flash-attn", "kernels-community/flash-attn2"},
        {"attention \"flash_attention_3\"", "kernels-community/vllm-flash-attn3"},
        {"attention \"flash_attention_4\"", "kernels-community/flash-attn4"},
        {"models in FP8", "kernels-community/finegrained-fp8"},
        {"models in FP8", "kernels-community/deep-gemm"},
        {"gpt-oss in mxfp4", "kernels-community/gpt-oss-triton-kernels"},
        {"Mamba and its family", "kernels-community/causal-conv1d"},
        {"Mamba and its family", "kernels-community/mamba-ssm"}}},
      // wheel transformers 5.24.0: the same, integrations/sonicmoe.py, integrations/nvfp4.py.
      {"transformers",
       {.major = 5, .minor = 14},
       kNoEnd,
       {.minor = 15, .patch = 2},
       kNoEnd,
       {{"attention \"flash_attention_2\" without flash-attn", "kernels-community/flash-attn2"},
        {"attention \"flash_attention_3\"", "kernels-community/vllm-flash-attn3"},
        {"attention \"flash_attention_4\"", "kernels-community/flash-attn4"},
        {"models in FP8", "kernels-community/finegrained-fp8"},
        {"models in FP8", "kernels-community/deep-gemm"},
        {"models in NVFP4", "kernels-community/nvfp4-gemm"},
        {"mixtures of experts by sonic-moe", "kernels-community/sonic-moe"},
        {"gpt-oss in mxfp4", "kernels-community/gpt-oss-triton-kernels"}}},
      // diffusers' models/attention_dispatch.py: backends named *_hub.
      {"diffusers",
       {.minor = 35},
       kNoEnd,
       {},
       kNoEnd,
       {{"set_attention_backend(\"flash_hub\")", "kernels-community/flash-attn2"},
        {"set_attention_backend(\"_flash_3_hub\")", "kernels-community/flash-attn3"},
        {"set_attention_backend(\"sage_hub\")", "kernels-community/sage-attention"}}},
  };
  return rows;
}

bool lies_in(const Version& version, const Version& first, const Version& before) {
  return version >= first && version < before;
}

}  // namespace

std::vector<std::string> kernel_questions(const std::vector<LockedWheel>& wheels,
                                          const std::vector<LockedKernel>& kernels) {
  std::map<std::string, std::string> versions;
  for (const LockedWheel& wheel : wheels) versions[bundle::normalized_project_name(wheel.name)] = wheel.version;
  const auto loader = versions.find("kernels");
  if (loader == versions.end()) return {};
  std::set<std::string> carried;
  for (const LockedKernel& kernel : kernels) carried.insert(kernel.spec.repo);
  std::vector<std::string> warnings;
  for (const Row& row : table()) {
    const auto found = versions.find(row.package);
    if (found == versions.end() || !lies_in(Version::leading(found->second), row.first, row.before) ||
        !lies_in(Version::leading(loader->second), row.loader_first, row.loader_before))
      continue;
    std::string missing;
    for (const Asked& asked : row.asked)
      if (!carried.contains(asked.repo))
        missing += (missing.empty() ? "" : "; ") + std::string(asked.repo) + " for " + asked.when;
    if (!missing.empty())
      warnings.push_back(
          found->first + " " + found->second + " fetches compiled kernels from a hub when it runs, and " + "kernels " +
          loader->second + " is there to do it: " + missing +
          ". Remedy: carry what your models use by [[kernel]], name attention \"sdpa\", or leave kernels "
          "out of the requirements");
  }
  return warnings;
}

}  // namespace sealift::packager
