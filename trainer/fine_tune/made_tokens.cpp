// SPDX-License-Identifier: Apache-2.0
// JSON lines become a token file in the job's folder, and so do several token files.
// See made_tokens.hpp. The child is started by start_process: this process has threads.
// It is made anew by every run, since data may have changed; a resumed run compares the digest of what it gets.
#include "trainer/fine_tune/made_tokens.hpp"

#include "bundle/core/foreign_text.hpp"
#include "bundle/host/start_process.hpp"
#include "trainer/data/joined_tokens.hpp"
#include "trainer/data/tokenize_command.hpp"
#include "trainer/failure.hpp"

#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

namespace sealift::trainer {
namespace {

/// Whether it has a token file's name or first bytes; anything else is for the scripts to read, or to refuse by name.
bool is_token_file(const std::string& path) {
  if (std::filesystem::path(path).extension() == ".tokens") return true;
  std::array<char, 8> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), magic.size()) == "SLTOKENS";
}

/// Runs `command`, its output on standard error; throws unless it succeeds.
void run_to_its_end(const std::vector<std::string>& command) {
  const pid_t child = bundle::start_process({.arguments = command,
                                             .environment = bundle::environment_with({}),
                                             .streams = {STDIN_FILENO, STDERR_FILENO, STDERR_FILENO},
                                             .of_login = true,
                                             .complaint = "cannot start " + bundle::one_line(command[0]) + ": "});
  const int error = errno;
  const int status = child < 0 ? 0 : bundle::wait_for_process(child);
  if (child < 0 || (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))) {
    throw std::invalid_argument("cannot start " + command[0] +
                                (child < 0 ? std::string(": ") + std::strerror(error) : "") +
                                "; make a token file by sealift-train tokenize --python, and give that as --data");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::invalid_argument("the data could not be tokenized; the lines above say why");
  }
}

/// tokenize's word for loss_scale. Texts count whole, and of preferences and labelled answers the last round does,
/// which is what ms-swift says of them.
std::string loss_on(const FineTuneOptions& options) {
  if (options.task == Task::Pretrain || options.loss_scale.empty() || options.loss_scale == "default")
    return "assistant";
  if (options.loss_scale == "all") return "all";
  return options.task == Task::Sft ? "last" : "assistant";
}

/// What the settings say of how JSON lines become tokens, as tokenize's arguments.
std::vector<std::string> how_lines_are_read(const FineTuneOptions& options) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  const bool texts = options.task == Task::Pretrain;
  if (options.max_length > 0) {
    const auto& strategy = options.truncation_strategy;
    add("--max-length", std::to_string(options.max_length));
    add("--truncation-strategy", !strategy.empty() ? strategy : texts ? "split" : "raise");
  }
  add("--loss-on", loss_on(options));
  if (options.skip_bad_lines) arguments.push_back("--skip-bad-lines");
  if (!options.system.empty()) add("--system", options.system);
  add("--data-format", options.data_format);
  if (options.max_samples > 0) add("--max-rows", std::to_string(options.max_samples));
  add("--data-seed", std::to_string(options.data_seed));
  if (!options.training_key.empty()) add("--training-key", options.training_key);
  if (!options.dataset_dir.empty()) add("--dataset-dir", options.dataset_dir);
  if (options.split_dataset_ratio > 0) add("--held-out", nlohmann::json(options.split_dataset_ratio).dump());
  if (options.alpaca_prompts) arguments.push_back("--alpaca-prompts");
  if (!options.add_non_thinking_prefix) arguments.push_back("--no-empty-thoughts");
  if (options.literal_markers) arguments.push_back("--literal-markers");
  if (!options.use_chat_template && !texts) add("--chat-template", "none");
  return arguments;
}

/// A token file has its tokens: throws where the settings ask for others.
void check_settled(const FineTuneOptions& options, const std::string& name, const std::string& file) {
  for (const auto& [key, given] :
       {std::pair{"loss_scale", loss_on(options) != "assistant"},
        {"system", !options.system.empty()},
        {"training_key", !options.training_key.empty()},
        {"max_samples", options.max_samples > 0},
        {"split_dataset_ratio", options.split_dataset_ratio > 0},
        {"alpaca_prompts", options.alpaca_prompts},
        {"literal_markers", options.literal_markers},
        {"use_chat_template", !options.use_chat_template && options.task != Task::Pretrain}}) {
    if (!given) continue;
    throw std::invalid_argument(std::string(key) + " is of JSON lines, and " + name + " is the token file " + file +
                                ", which has its tokens; leave it out, or tokenize the data with it");
  }
}

/// SEALIFT_TRAIN_PYTHON, or the one beside this program, or of PATH.
std::string this_python() {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  const char* python = std::getenv("SEALIFT_TRAIN_PYTHON");
  return python_for(python ? python : "", program);
}

}  // namespace

std::string made_tokens(const std::vector<std::string>& files, const std::string& name, const FineTuneOptions& options,
                        train::Groups& world) {
  const auto token_files = static_cast<std::size_t>(std::count_if(files.begin(), files.end(), is_token_file));
  if (token_files > 0 && token_files < files.size()) {
    throw std::invalid_argument(name + " names a token file beside other files; give token files alone, or the files " +
                                "that they were made of; either become one");
  }
  if (token_files > 0) {
    for (const auto& file : files) check_settled(options, name, file);
  }
  if (token_files == 1) return files.front();
  auto out = std::filesystem::path(options.out) / "tokens" / (name + ".tokens");
  const auto make = [&] {
    std::filesystem::create_directories(out.parent_path());
    if (token_files > 0) return join_token_files({files.begin(), files.end()}, out);
    std::vector<std::string> arguments = {"--model", options.model, "--out", out.string()};
    const auto how = how_lines_are_read(options);
    arguments.insert(arguments.end(), how.begin(), how.end());
    // The rows that are held out of the dataset.
    if (options.split_dataset_ratio > 0 && name == "val_dataset") arguments.push_back("--held-out-only");
    arguments.push_back("--data");
    arguments.insert(arguments.end(), files.begin(), files.end());
    say("tokenizing " + name);
    run_to_its_end(tokenize_command(this_python(), arguments));
  };
  if (world.world.rank() == 0) make();
  world.world.barrier();
  // Opened, since NFS may remember that there was none.
  if (!std::ifstream(out)) {
    out.replace_filename(name + ".rank" + std::to_string(world.world.rank()) + ".tokens");
    make();
  }
  world.world.barrier();
  return out.string();
}

bool add_texts(const std::filesystem::path& samples, const std::string& model) {
  try {
    run_to_its_end(tokenize_command(this_python(), {"--decode", samples.string(), "--model", model}));
    return true;
  } catch (const std::invalid_argument&) {
    say("note: " + samples.string() + " has token numbers and no text; set SEALIFT_TRAIN_PYTHON to a Python that has " +
        "tokenizers");
    return false;
  }
}

}  // namespace sealift::trainer
