// SPDX-License-Identifier: Apache-2.0
// The built-in table against what is locked and carried; see kernel_questions.hpp.
#include "packager/kernels/kernel_questions.hpp"

#include <algorithm>
#include <map>

#include "packager/kernels/asked_kernels.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Version;

namespace {

// What a repository is for, by its name without the organisation's.
std::string purpose_of_kernel(const AskedKernel& kernel) {
  if (kernel.when == "layers") return "use_kernels=True";
  if (kernel.when == "backend") return "an attention backend named *_hub";
  static const std::map<std::string, std::string> purposes = {
      {"flash-attn", "attention \"flash_attention_2\" without flash-attn"},
      {"flash-attn2", "attention \"flash_attention_2\" without flash-attn"},
      {"vllm-flash-attn3", "attention \"flash_attention_3\""},
      {"flash-attn4", "attention \"flash_attention_4\""},
      {"finegrained-fp8", "models in FP8"},
      {"deep-gemm", "models in FP8"},
      {"fp8-fbgemm", "models in FBGEMM's FP8"},
      {"quantization", "models in FBGEMM's FP8"},
      {"quantization-eetq", "models by EETQ"},
      {"nvfp4-gemm", "models in NVFP4"},
      {"sonic-moe", "mixtures of experts by sonic-moe"},
      {"triton_kernels", "gpt-oss in mxfp4"},
      {"gpt-oss-triton-kernels", "gpt-oss in mxfp4"},
      {"causal-conv1d", "Mamba and its family"},
      {"mamba-ssm", "Mamba and its family"},
      {"cv-utils", "SAM 3 with videos"},
      {"cv_utils", "SAM 3 with videos"},
      {"ggml-quantization", "models in GGUF"},
      {"ggml", "models in GGUF with DIFFUSERS_GGUF_CUDA_KERNELS"},
      {"natten", "LTX-2's video decoder"},
      {"nunchaku-lite-kernels", "models by Nunchaku"},
      {"rwkv", "RWKV"},
      {"mra", "MRA"},
      {"yoso", "YOSO"},
  };
  const auto found = purposes.find(kernel.repo.substr(kernel.repo.find('/') + 1));
  return found == purposes.end() ? "some models" : found->second;
}

std::string joined_words(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Empty where it is carried as it is asked for.
std::string not_carried(const AskedKernel& asked, const std::vector<LockedKernel>& kernels) {
  std::vector<std::string> others;
  for (const LockedKernel& kernel : kernels) {
    if (kernel.spec.repo != asked.repo) continue;
    // LOCAL_KERNELS stands for whatever revision is asked for.
    if (kernel.named_by_variable ||
        std::find(asked.revisions.begin(), asked.revisions.end(), kernel.spec.revision) != asked.revisions.end())
      return {};
    others.push_back(kernel.spec.revision);
  }
  return asked.repo + " at " + joined_words(asked.revisions, " or ") +
         (others.empty() ? "" : ", not " + joined_words(others, " and ") + ",");
}

std::string kernel_question(const std::string& who, const Asking& asking, const std::string& loader,
                            const std::vector<LockedKernel>& kernels) {
  std::vector<std::string> itself;
  std::map<std::string, std::vector<std::string>> on_request;
  for (const AskedKernel& asked : asking.kernels) {
    const std::string name = not_carried(asked, kernels), purpose = purpose_of_kernel(asked);
    if (name.empty()) continue;
    if (asked.when == "itself")
      itself.push_back(name + " for " + purpose);
    else
      on_request[purpose].push_back(name);
  }
  for (const auto& [purpose, names] : on_request)
    itself.push_back("and with " + purpose + " " + joined_words(names, ", "));
  if (itself.empty()) return {};
  return who + " fetches compiled kernels from a hub when it runs, and kernels " + loader +
         " is there to do it: " + joined_words(itself, "; ") +
         ". Remedy: carry what your models use by [[kernel]] with repo and revision as named here, name attention "
         "\"sdpa\", or leave kernels out of the requirements";
}

}  // namespace

std::vector<std::string> kernel_questions(const std::vector<LockedWheel>& wheels,
                                          const std::vector<LockedKernel>& kernels) {
  std::map<std::string, std::string> versions;
  for (const LockedWheel& wheel : wheels) versions[bundle::normalized_project_name(wheel.name)] = wheel.version;
  const auto loader = versions.find("kernels");
  if (loader == versions.end()) return {};
  std::vector<std::string> warnings;
  for (const auto& [package, version] : versions) {
    const Asking asking = asked_by(package, Version::leading(version));
    if (asking.kernels.empty()) continue;
    const std::string who = package + " " + version;
    if (asking.window.holds(Version::leading(loader->second))) {
      if (std::string said = kernel_question(who, asking, loader->second, kernels); !said.empty())
        warnings.push_back(std::move(said));
    } else if (!kernels.empty()) {
      warnings.push_back(who + " takes kernels" + asking.window.text +
                         ", and loads no carried kernel: beside kernels " + loader->second +
                         " it acts as if there were none. Remedy: require a release of kernels that "
                         "it takes, or a release of " +
                         package + " that takes kernels " + loader->second);
    }
  }
  return warnings;
}

}  // namespace sealift::packager
