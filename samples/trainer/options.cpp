// SPDX-License-Identifier: Apache-2.0
// The table of settings and the three places that they come from.
// See options.hpp. Only this file of the trainer reads TOML.
// A value is text until the table gives its type, so all sources get the same checks and the same messages.
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "sealift/toml.hpp"

namespace sealift::trainer {
namespace {

std::string replace(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

/// What separates the items of a list in a flag and in the environment.
constexpr char kSeparator = ',';

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, kSeparator);) items.push_back(item);
  return items;
}

/// Reads one setting's text into `options`; `source` is for the message: where the text was written.
void assign(Options& options, const Setting& setting, const std::string& text, const std::string& source) {
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) refuse(setting.name + " is '" + text + "' (" + source + "); expected " + expected);
  };
  const auto number = [&](auto& value, const char* expected) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    expect(error == std::errc{} && end == text.data() + text.size() && value >= 0, expected);
  };
  const auto read = [&](auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::int64_t>) number(value, "a whole number, not negative");
    if constexpr (std::is_same_v<Value, double>) number(value, "a number, not negative");
    if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, std::optional<bool>>) {
      expect(text == "true" || text == "false", "true or false");
      value = text == "true";
    }
    if constexpr (std::is_same_v<Value, std::string>) value = text;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) value = split(text);
  };
  std::visit([&](auto field) { read(options.*field); }, setting.field);
}

std::string text_of(const Options& options, const Setting& setting) {
  std::ostringstream text;
  text << std::boolalpha;
  const auto write = [&](const auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      for (const auto& item : value) text << (&item == &value.front() ? "" : ",") << item;
    } else if constexpr (std::is_same_v<Value, std::optional<bool>>) {
      if (value) text << *value;
    } else {
      text << value;
    }
  };
  std::visit([&](auto field) { write(options.*field); }, setting.field);
  return text.str();
}

/// The items of a TOML list of texts, as a flag would have them.
std::string list_text(const toml::node& node, const std::string& where) {
  const auto* list = node.as_array();
  if (!list) refuse(where + " is no list; write it as [\"one\", \"two\"]");
  std::string text;
  for (const auto& item : *list) {
    const auto* value = item.as_string();
    if (!value) refuse(where + " is no list of texts");
    text += (text.empty() ? "" : std::string(1, kSeparator)) + value->get();
  }
  return text;
}

Texts read_toml(const std::string& path) {
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    std::ostringstream where;
    where << path << ": " << error.description() << " (" << error.source().begin << ")";
    refuse(where.str());
  }
  Texts texts;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto setting =
        std::find_if(settings().begin(), settings().end(), [&](const auto& s) { return s.name == name; });
    if (setting == settings().end()) {
      refuse(path + ": unknown key '" + name + "'; sealift-train run --help lists the settings");
    }
    if (std::holds_alternative<std::vector<std::string> Options::*>(setting->field)) {
      texts[name] = list_text(node, path + ": " + name);
      continue;
    }
    std::ostringstream text;
    if (const auto* value = node.as_string()) {
      text << value->get();
    } else if (const auto* value = node.as_integer()) {
      text << value->get();
    } else if (const auto* value = node.as_floating_point()) {
      text << value->get();
    } else if (const auto* value = node.as_boolean()) {
      text << (value->get() ? "true" : "false");
    } else {
      refuse(path + ": " + name + " is neither text nor a number nor true or false");
    }
    texts[name] = text.str();
  }
  return texts;
}

}  // namespace

std::string Setting::flag() const {
  return "--" + replace(name, '_', '-');
}

std::string Setting::variable() const {
  std::string upper = "SEALIFT_TRAIN_" + name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

const std::vector<Setting>& settings() {
  using enum Changes;
  static const std::vector<Setting> table = {
      {Numbers, "steps", "optimizer steps", &Options::steps},
      {Numbers, "seed", "of the model and the data", &Options::seed},
      {Numbers, "global_batch", "sequences per step, over all ranks and micro-batches", &Options::global_batch},
      {Numbers, "learning_rate", "of AdamW", &Options::learning_rate},
      {Numbers, "weight_decay", "of matrices; biases and norms have none", &Options::weight_decay},
      {Numbers, "clip", "largest gradient norm; 0: no clipping", &Options::clip},
      {Numbers, "precision", "fp32; mixed: compute in bf16, reduce in fp32; pure: both in bf16", &Options::precision},
      {Numbers, "vocabulary", "of the synthetic language", &Options::vocabulary},
      {Numbers, "context", "tokens per sequence", &Options::context},
      {Numbers, "layers", "of the GPT", &Options::layers},
      {Numbers, "width", "of the GPT", &Options::width},
      {Numbers, "heads", "of the GPT; divide the width", &Options::heads},

      {Way, "parallel_method", "none, ddp, fsdp or hsdp", &Options::parallel_method},
      {Way, "sharding_strategy", "the same in FSDP1's names: FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD",
       &Options::sharding_strategy},
      {Way, "shard_size", "hsdp: ranks that share one copy of the model", &Options::shard_size},
      {Way, "wrapping_strategy", "what is gathered together, in OLMo's names: by_block, by_block_group, root_only ...",
       &Options::wrapping_strategy},
      {Way, "blocks_per_unit", "of by_block_group and one_in_k, which need it", &Options::blocks_per_unit},
      {Way, "min_numel", "elements of the smallest unit, of size_based and by_block_and_size", &Options::min_numel},
      {Way, "reshard_after_forward", "true: gather again for backward; false: keep until then",
       &Options::reshard_after_forward},
      {Way, "reshard_group", "after forward keep the part of a group of so many ranks; 0: of all",
       &Options::reshard_group},

      {Way, "micro_batches", "per rank and step; gradients are reduced with the last", &Options::micro_batches},
      {Way, "keep_gathered", "between the micro-batches of a step; unset: where memory is there",
       &Options::keep_gathered},
      {Way, "reduce_every_micro_batch", "true: less memory, more traffic", &Options::reduce_every_micro_batch},
      {Way, "forward_prefetch", "units gathered ahead in forward", &Options::forward_prefetch},
      {Way, "backward_prefetch", "units gathered ahead in backward", &Options::backward_prefetch},
      {Way, "bucket_mb", "MiB of one all-reduce of replicated gradients", &Options::bucket_mb},
      {Way, "find_unused_parameters", "true: ranks may use different parameters", &Options::find_unused_parameters},

      {Way, "recompute", "true: keep only each block's input, run the block again in backward", &Options::recompute},
      {Way, "offload", "to host memory: parameters, gradients, optimizer_state", &Options::offload},

      {Way, "device", "auto: a GPU for each rank where there is a driver; cpu; cuda: refuse to go without",
       &Options::device},
      {Way, "threads", "per rank; 0: the host's cores shared by its ranks", &Options::threads},
      {Way, "timeout_seconds", "how long a rank that does not answer is waited for", &Options::timeout_seconds},
      {Way, "out", "folder for log.jsonl and result.json", &Options::out},
      {Way, "trace", "file for a Chrome trace of the last ten steps of all ranks; empty: none", &Options::trace},
      {Way, "tensorboard", "folder for TensorBoard's scalars of rank 0; empty: none", &Options::tensorboard},
      {Way, "checkpoint_folder", "where checkpoints are saved and resumed from; empty: none",
       &Options::checkpoint_folder},
      {Way, "checkpoint_every", "steps between checkpoints; 0: only after the last", &Options::checkpoint_every},
      {Way, "keep_checkpoints", "how many; 0: all", &Options::keep_checkpoints},
      {Way, "resume", "auto: go on from the last checkpoint if there is one; none: refuse to", &Options::resume},
  };
  return table;
}

Options read_options(const Texts& flags, const std::string& config_file) {
  const Texts file = config_file.empty() ? Texts{} : read_toml(config_file);
  Options options;
  for (const auto& setting : settings()) {
    const char* variable = std::getenv(setting.variable().c_str());
    if (const auto flag = flags.find(setting.name); flag != flags.end()) {
      assign(options, setting, flag->second, setting.flag());
    } else if (variable) {
      assign(options, setting, variable, setting.variable());
    } else if (const auto entry = file.find(setting.name); entry != file.end()) {
      assign(options, setting, entry->second, config_file);
    }
  }
  for (auto [name, value] : {std::pair{"steps", options.steps},
                             {"micro_batches", options.micro_batches},
                             {"context", options.context},
                             {"global_batch", options.global_batch},
                             {"heads", options.heads},
                             {"bucket_mb", options.bucket_mb},
                             {"timeout_seconds", options.timeout_seconds}}) {
    if (value < 1) refuse(std::string(name) + " is " + std::to_string(value) + "; expected at least 1");
  }
  if (options.device != "auto" && options.device != "cpu" && options.device != "cuda") {
    refuse("device is '" + options.device + "'; use auto, cpu or cuda");
  }
  if (options.resume != "auto" && options.resume != "none") {
    refuse("resume is '" + options.resume + "'; use auto or none");
  }
  for (const auto& item : options.offload) {
    if (item == "parameters" || item == "gradients" || item == "optimizer_state") continue;
    refuse("offload has '" + item + "'; use any of parameters, gradients, optimizer_state");
  }
  return options;
}

Texts comparable(const Options& options) {
  Texts texts;
  for (const auto& setting : settings()) {
    if (setting.changes == Changes::Numbers) texts[setting.name] = text_of(options, setting);
  }
  return texts;
}

}  // namespace sealift::trainer
