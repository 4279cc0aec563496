// SPDX-License-Identifier: Apache-2.0
// See not_here.hpp.
// An id has one slash and is no path that is there; ms-swift writes MS:: or HF:: before it, :subset and #rows behind.
#include "trainer/settings/not_here.hpp"

#include "trainer/settings/refuse.hpp"
#include "trainer/settings/settings_file.hpp"

#include <filesystem>
#include <regex>

namespace sealift::trainer {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// `owner/name`, as Hugging Face and ModelScope have it.
bool is_id(const std::string& text) {
  static const std::regex id("((ms|hf|MS|HF)::)?[A-Za-z0-9][\\w.-]*/[A-Za-z0-9][\\w.-]*(:[\\w.-]+)?(#\\d+)?");
  static const std::regex file("[^#]*\\.(jsonl?|tokens|csv|tsv|txt|parquet|arrow)(\\.(gz|xz|bz2|zst))?(#\\d+)?");
  return !std::regex_match(text, file) && !is_there(text) && std::regex_match(text, id);
}

void refuse_model(const std::string& name, const std::string& value) {
  if (!is_id(value)) return;
  refuse(name + " is '" + value +
         "', an id of a hub and no folder that is here; nothing is downloaded: name it in the " +
         "job file of a bundle ([[model]]) outside, and give the folder that the bundle lays down here");
}

void refuse_data(const std::string& name, const std::string& value, bool has_counts) {
  static const std::regex rows("(.+)#(\\d+)");
  std::smatch found;
  if (is_id(value)) {
    refuse(name + " is '" + value +
           "', an id of a hub and no file that is here; nothing is downloaded: carry the data " +
           "in a bundle ([[data]] of its job file), and give the file that it lays down here");
  }
  if (has_counts || is_there(value) || !std::regex_match(value, found, rows)) return;
  const auto file = found[1].str(), count = found[2].str();
  refuse(name + " is '" + value + "': ms-swift takes " + count + " rows of " + file +
         " at random; here a file is taken " + "whole. Take them once, as by: shuf -n " + count + " --random-source=" +
         file + " " + file + " > part.jsonl; or say data_format: ms-swift, in whose data it means that");
}

}  // namespace

void refuse_what_is_not_here(const FineTuneOptions& options) {
  refuse_model("model", options.model);
  refuse_model("ref_model", options.ref_model);
  for (const auto& adapter : options.adapters) refuse_model("adapters", adapter);
  if (!options.dataset_dir.empty()) return;                   // its dataset_info.json says what the names of data mean
  const bool has_counts = options.data_format == "ms-swift";  // there FILE#20 is twenty of its rows
  for (const auto& file : options.dataset) refuse_data("dataset", file, has_counts);
  for (const auto& file : options.val_dataset) refuse_data("val_dataset", file, has_counts);
}

Task task_of_rlhf(const FineTuneSources& sources) {
  std::string type;
  if (const auto flag = sources.flags.find("rlhf_type"); flag != sources.flags.end()) {
    type = flag->second;
  } else if (!sources.config_file.empty()) {
    const auto texts = read_config(sources.config_file);
    if (const auto key = texts.find("rlhf_type"); key != texts.end()) type = key->second;
  }
  if (type.empty() || type == "dpo" || type == "simpo" || type == "cpo" || type == "orpo") return Task::Dpo;
  if (type == "kto") return Task::Kto;
  if (type == "rm") return Task::Reward;
  refuse("rlhf_type is '" + type +
         "'; trained here are dpo, simpo, cpo, orpo, kto and rm: what generates answers while " +
         "it trains (grpo, ppo, gkd) is not");
}

}  // namespace sealift::trainer
