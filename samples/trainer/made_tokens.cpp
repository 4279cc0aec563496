// SPDX-License-Identifier: Apache-2.0
// JSON lines become a token file in the job's folder.
// See made_tokens.hpp. The child is started by posix_spawn: this process has threads.
// It is made anew by every run, since data may have changed; a resumed run compares the digest of what it gets.
#include "made_tokens.hpp"

#include "data/tokenize_command.hpp"
#include "failure.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace sealift::trainer {
namespace {

bool is_lines(const std::string& file) {
  const auto ending = std::filesystem::path(file).extension();
  return ending == ".jsonl" || ending == ".json";
}

/// Runs `command`, its output on standard error; throws unless it succeeds.
void run_to_its_end(const std::vector<std::string>& command) {
  std::vector<char*> pointers;
  for (const auto& word : command) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::invalid_argument("cannot start " + command[0] + ": " + std::strerror(error) +
                                "; make a token file by sealift-train tokenize --python, and give that as --data");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::invalid_argument("the data could not be tokenized; the lines above say why");
  }
}

}  // namespace

std::string made_tokens(const std::vector<std::string>& files, const std::string& name, const FineTuneOptions& options,
                        train::Groups& world) {
  const auto lines = std::count_if(files.begin(), files.end(), is_lines);
  if (lines == 0 && files.size() == 1) return files.front();
  if (lines != static_cast<std::int64_t>(files.size())) {
    throw std::invalid_argument(name +
                                " names several files of which not all are JSON lines (.jsonl, .json); give one " +
                                "token file, or files of JSON lines");
  }
  const auto out = std::filesystem::path(options.out) / "tokens" / (name + ".tokens");
  if (world.world.rank() == 0) {
    std::filesystem::create_directories(out.parent_path());
    std::error_code none;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
    std::vector<std::string> arguments = {"--model", options.model, "--out", out.string()};
    if (options.max_length > 0) {
      const auto strategy = options.task == Task::Pretrain ? "split" : "raise";
      arguments.insert(arguments.end(),
                       {"--max-length", std::to_string(options.max_length), "--truncation-strategy", strategy});
    }
    arguments.push_back("--data");
    arguments.insert(arguments.end(), files.begin(), files.end());
    say("tokenizing " + name);
    const char* python = std::getenv("SEALIFT_TRAIN_PYTHON");
    run_to_its_end(tokenize_command(python_for(python ? python : "", program), arguments));
  }
  world.world.barrier();
  return out.string();
}

}  // namespace sealift::trainer
