// SPDX-License-Identifier: Apache-2.0
// The table of settings and the three places that they come from.
// See options.hpp. Files are read by toml++ here and nowhere else in the trainer.
// A value is text until the table says what it is, so all sources get the same checks and the same messages.
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

// Compiled in: the program must not need a shared library that only the building machine has.
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace sealift::trainer {
namespace {

std::string replace(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

/// `source` is for the message: where the text was written.
void assign(Options& options, const Setting& setting, const std::string& text, const std::string& source) {
  const auto number = [&](auto& value, const char* expected) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
      refuse(setting.name + " is '" + text + "' (" + source + "); expected " + expected);
    }
  };
  if (const auto* field = std::get_if<std::int64_t Options::*>(&setting.field))
    number(options.*(*field), "a whole number, not negative");
  if (const auto* field = std::get_if<double Options::*>(&setting.field))
    number(options.*(*field), "a number, not negative");
  if (const auto* field = std::get_if<std::string Options::*>(&setting.field)) options.*(*field) = text;
}

std::string text_of(const Options& options, const Setting& setting) {
  std::ostringstream text;
  std::visit([&](auto field) { text << options.*field; }, setting.field);
  return text.str();
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
    const bool known = std::any_of(settings().begin(), settings().end(), [&](const auto& s) { return s.name == name; });
    if (!known) refuse(path + ": unknown key '" + name + "'; sealift-train run --help lists the settings");
    std::ostringstream text;
    if (const auto* value = node.as_string()) {
      text << value->get();
    } else if (const auto* value = node.as_integer()) {
      text << value->get();
    } else if (const auto* value = node.as_floating_point()) {
      text << value->get();
    } else {
      refuse(path + ": " + name + " is neither text nor a number");
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
  static const std::vector<Setting> table = {
      {"parallel_method", "none, ddp, fsdp or hsdp", &Options::parallel_method},
      {"shard_size", "hsdp: ranks that share one copy of the model", &Options::shard_size},
      {"steps", "optimizer steps", &Options::steps},
      {"seed", "of the model and the data", &Options::seed},
      {"global_batch", "sequences per step, over all ranks and micro-batches", &Options::global_batch},
      {"micro_batches", "per rank and step; gradients are reduced with the last", &Options::micro_batches},
      {"learning_rate", "of AdamW", &Options::learning_rate},
      {"weight_decay", "of matrices; biases and norms have none", &Options::weight_decay},
      {"clip", "largest gradient norm; 0: no clipping", &Options::clip},
      {"vocabulary", "of the synthetic language", &Options::vocabulary},
      {"context", "tokens per sequence", &Options::context},
      {"layers", "of the GPT", &Options::layers},
      {"width", "of the GPT", &Options::width},
      {"heads", "of the GPT; divide the width", &Options::heads},
      {"threads", "per rank; 0: the host's cores shared by its ranks", &Options::threads},
      {"timeout_seconds", "how long a rank that does not answer is waited for", &Options::timeout_seconds},
      {"out", "folder for log.jsonl and result.json", &Options::out},
      {"checkpoint_folder", "where checkpoints are saved and resumed from; empty: none", &Options::checkpoint_folder},
      {"checkpoint_every", "steps between checkpoints; 0: only after the last", &Options::checkpoint_every},
      {"keep_checkpoints", "how many; 0: all", &Options::keep_checkpoints},
      {"resume", "auto: go on from the last checkpoint if there is one; none: refuse to", &Options::resume},
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
                             {"timeout_seconds", options.timeout_seconds}}) {
    if (value < 1) refuse(std::string(name) + " is " + std::to_string(value) + "; expected at least 1");
  }
  if (options.resume != "auto" && options.resume != "none") {
    refuse("resume is '" + options.resume + "'; use auto or none");
  }
  return options;
}

Texts comparable(const Options& options) {
  static const std::vector<std::string> kOnlyHow = {
      "parallel_method",   "shard_size",       "micro_batches",    "threads", "timeout_seconds", "out",
      "checkpoint_folder", "checkpoint_every", "keep_checkpoints", "resume"};
  Texts texts;
  for (const auto& setting : settings()) {
    if (std::find(kOnlyHow.begin(), kOnlyHow.end(), setting.name) == kOnlyHow.end()) {
      texts[setting.name] = text_of(options, setting);
    }
  }
  return texts;
}

}  // namespace sealift::trainer
