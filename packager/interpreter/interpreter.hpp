// SPDX-License-Identifier: Apache-2.0
// Finds the Python that is asked for, of which interpreter_facts.hpp then says all that matters. It may be this
// machine's, one of a folder or an archive, or one for another kind of processor.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "packager/interpreter/interpreter_facts.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// Which interpreter is wanted.
struct InterpreterChoice {
  std::string version;                                  // "3.11"
  std::string interpreter = "auto";                     // "auto", or an executable, a folder or an archive
  std::optional<bundle::Digest> sha256 = std::nullopt;  // of an archive
  std::string asked_in = {};                            // the job file, for messages
  std::string arch = {};                                // of the target; empty: this machine's
};

// `uv` finds it when it is "auto". Archives are unpacked into `scratch`. One for another kind of processor is not run
// but read (foreign_interpreter.hpp). Throws Missing; Usage for an archive without a digest and Digest for one with
// another; Platform when it is of another version or architecture, or cannot be carried.
Interpreter find_interpreter(const InterpreterChoice& choice, const std::filesystem::path& uv,
                             const std::filesystem::path& scratch);

}  // namespace sealift::packager
