// SPDX-License-Identifier: Apache-2.0
// `sealift-train tokenize`: JSON lines in, a token file out, by the prefix's Python.
// See data/tokenize for what is done; here is only which Python does it.
// The scripts read the arguments, so that an option has one place; this process becomes theirs, exit code included.
#include "bundle/host/start_process.hpp"
#include "trainer/data/tokenize_command.hpp"
#include "trainer/verbs/verbs.hpp"

#include <cstring>
#include <stdexcept>

namespace sealift::trainer {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::cout.flush();
  const int error = bundle::become_program(command);
  throw std::invalid_argument("cannot start " + command[0] + ": " + std::strerror(error) +
                              "; say which Python has tokenizers and jinja2 by --python");
}

std::filesystem::path this_program() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none);
}

}  // namespace

void add_tokenize(bundle::Program& program) {
  const auto python = std::make_shared<std::string>();
  const auto verb = program.verb("tokenize", "make a token file of JSON lines, by a model's tokenizer and template");
  verb.option("--python", *python, "a Python that has tokenizers and jinja2 [beside this program, or of PATH]");
  const auto others = std::make_shared<std::vector<std::string>>();
  verb.others(*others, /*helps=*/false);  // the scripts say what they take
  verb.action([python, others]() -> int { become(tokenize_command(python_for(*python, this_program()), *others)); });
}

}  // namespace sealift::trainer
