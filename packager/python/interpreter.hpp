// SPDX-License-Identifier: Apache-2.0
// Finds a Python, asks it about itself, and gathers it into a tree that works wherever it is unpacked. That may be a
// distribution's interpreter (prefix /usr, of which only Python's parts are taken) or one with a prefix of its own.
// native_closure finds the libraries that it needs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "packager/files/tree.hpp"
#include "packager/native/native_closure.hpp"
#include "packager/python/interpreter_facts.hpp"
#include "sealift/bundle/host/progress.hpp"

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

// Executable, standard library and headers, without tests, caches and modules that cannot work elsewhere.
Tree gather_interpreter(const Interpreter& interpreter, const std::filesystem::path& launcher);

// Adds to `resolver` what the tree's ELF files need, drops extension modules whose libraries are not on this machine
// (with a warning), and puts all libraries of `resolver`, with libstdc++ and libgcc_s, into lib/. Files that need
// another search path are copied to `scratch` and changed there with `patchelf`.
void carry_libraries(Tree& tree, const Interpreter& interpreter, NativeResolver& resolver, bundle::GlibcVersion target,
                     const std::filesystem::path& patchelf, const std::filesystem::path& scratch,
                     bundle::Progress& progress);

}  // namespace sealift::packager
