// SPDX-License-Identifier: Apache-2.0
// The question goes to stderr, like everything that is not a result.
#include "installer/host/ask_volume.hpp"

#include <unistd.h>

#include <iostream>
#include <optional>

#include "bundle/core/foreign_text.hpp"

namespace sealift::installer {

namespace {

std::optional<std::filesystem::path> ask(const bundle::Volume& volume, const bundle::Error& fault) {
  std::cerr << "\n"
            << bundle::terminal_text(fault.what()) << "\nPut in the disc with " << volume.name
            << " and press Enter, or type the folder where it lies, or q to give up: " << std::flush;
  std::string answer;
  if (!std::getline(std::cin, answer) || answer == "q") return std::nullopt;
  return answer;
}

}  // namespace

bundle::VolumeAsker terminal_asker() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) return {};
  return ask;
}

}  // namespace sealift::installer
