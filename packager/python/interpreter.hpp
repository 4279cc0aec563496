// SPDX-License-Identifier: Apache-2.0
// Finds a Python, asks it about itself, and gathers it into a tree that works wherever it is unpacked. That may be a
// distribution's interpreter (prefix /usr, of which only Python's parts are taken) or one with a prefix of its own.
// native_closure finds the libraries that it needs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packager/files/tree.hpp"
#include "packager/native/native_closure.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// What an interpreter says about itself.
struct Interpreter {
  std::filesystem::path executable;
  std::string version;  // "3.11.2"
  std::string minor;    // "3.11"
  std::filesystem::path prefix;
  std::filesystem::path stdlib;
  std::filesystem::path headers;   // empty: there are none
  std::filesystem::path pyconfig;  // on multiarch systems, where the one among the headers only includes it
  std::filesystem::path wheels;    // where a distribution keeps ensurepip's wheels; empty: they are in the library
  std::vector<std::string> builtin_modules;  // those that are in the executable itself
  bool finds_site_packages = true;           // in PREFIX/lib/pythonX.Y/site-packages, without a sitecustomize of ours

  std::string site_packages() const { return "lib/python" + minor + "/site-packages"; }
  std::string description() const { return "CPython " + version; }
};

// Which interpreter is wanted.
struct InterpreterChoice {
  std::string version;                                  // "3.11"
  std::string interpreter = "auto";                     // "auto", or an executable, a folder or an archive
  std::optional<bundle::Digest> sha256 = std::nullopt;  // of an archive
  std::string asked_in = {};                            // the job file, for messages
};

// `uv` finds it when it is "auto". Archives are unpacked into `scratch`. Throws Missing; Usage for an archive without a
// digest and Digest for one with another; Platform when it is of another version, or cannot be carried.
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
