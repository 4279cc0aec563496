// SPDX-License-Identifier: Apache-2.0
// The settings that act rank by rank.
// See by_rank.hpp.
// Partial last steps are not among them: the trainer divides by the rows of the whole step.
#include "verify/training/by_rank.hpp"

#include <cstdlib>
#include <fstream>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnDropout = "0.05";  // of `sft` and its kin, where lora_dropout is not said

std::string said_by(const TrainingJob& job, const char* key, const char* otherwise) {
  const auto found = job.settings.find(key);
  return found == job.settings.end() ? otherwise : found->second;
}

bool is_above_zero(const std::string& text) {
  return std::strtod(text.c_str(), nullptr) > 0;
}

/// PEFT's folder says its dropout itself, whatever the job says.
bool adapters_drop(const fs::path& folder) {
  std::ifstream in(folder / "adapter_config.json");
  const auto json = nlohmann::json::parse(in, nullptr, false);
  return json.is_object() && json.contains("lora_dropout") && json["lora_dropout"].is_number() &&
         json["lora_dropout"].get<double>() > 0;
}

bool drops(const TrainingJob& job, const fs::path& prefix) {
  if (said_by(job, "tuner_type", "lora") == "none") return false;
  const auto adapters = said_by(job, "adapters", "");
  return adapters.empty() ? is_above_zero(said_by(job, "lora_dropout", kOwnDropout)) : adapters_drop(prefix / adapters);
}

/// The mean of the chosen answers' own loss over each micro-batch.
bool has_mean_of_micro_batches(const TrainingJob& job) {
  const auto type = said_by(job, "rlhf_type", "dpo");
  if (type == "orpo") return true;
  if (type == "cpo" || type == "simpo") return is_above_zero(said_by(job, "cpo_alpha", "1"));
  return is_above_zero(said_by(job, "rpo_alpha", "0"));
}

}  // namespace

std::string setting_by_rank(const TrainingJob& job, const fs::path& prefix) {
  if (job.verb == "run") return {};
  if (drops(job, prefix)) return "lora_dropout";
  if (is_above_zero(said_by(job, "router_aux_loss_coef", "0"))) return "router_aux_loss_coef";
  if (said_by(job, "precision", "fp32") == "fp16") return "precision";
  if (job.verb == "dpo" && has_mean_of_micro_batches(job)) return "rlhf_type";
  return {};
}

Phrase why_by_rank(const std::string& setting) {
  if (setting == "lora_dropout") {
    return {"lora_dropout is above 0, and each rank draws random numbers of its own",
            "lora_dropout 大于 0，每个进程各自抽取随机数"};
  }
  if (setting == "precision") {
    return {"in fp16 the loss scale follows which gradients overflow, which differs with the ranks",
            "fp16 的损失缩放取决于哪些梯度溢出，这随进程数而不同"};
  }
  return {setting + " takes means over the micro-batches of each rank", setting + " 在每个进程的微批上取平均"};
}

std::string instead_of(const std::string& setting) {
  if (setting == "precision") return "precision = \"bf16\"";
  return setting == "rlhf_type" ? "rlhf_type = \"dpo\" without rpo_alpha" : setting + " = 0";
}

}  // namespace sealift::verify
