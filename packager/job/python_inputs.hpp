// SPDX-License-Identifier: Apache-2.0
// [python] of a job file in any of the forms in which people have it: requirements, a pyproject, a lock of uv or of
// PEP 751. Read by `job`, turned into arguments of uv by `resolve`; no other step uses it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/lock/locked_indexes.hpp"
#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

// What the build of one package gets beside what its project says: flash-attn imports torch and runs nvcc, and names
// neither (uv's extra-build-dependencies and extra-build-variables).
struct BuildExtras {
  std::vector<std::string> requirements;
  std::map<std::string, std::string> variables;  // as build_variable.hpp has them

  bool operator==(const BuildExtras&) const = default;
};

struct PythonInputs {
  std::vector<std::string> requirements;  // a folder in one is relative to the job file
  std::optional<std::filesystem::path> requirements_file;
  std::optional<std::filesystem::path> pyproject;  // its dependencies, not the project itself
  std::vector<std::string> extras, groups;         // of the pyproject, or of the lock_file
  std::optional<std::filesystem::path> lock_file;  // pylock.toml, pylock.NAME.toml or uv.lock: taken as it is
  std::vector<std::string> constraints;
  std::vector<std::string> build_constraints;  // for the requirements of builds
  std::vector<std::string> excludes;           // packages that are left out, no matter what asks for them; normalized
  std::map<std::string, BuildExtras> builds;   // by package, normalized
  std::optional<std::string> default_index;    // instead of uv's; "NAME=URL" or "URL"
  std::vector<std::string> indexes;            // likewise; asked before it
  std::string torch_backend;                   // "auto", or uv's name: "cu128", "cpu"; empty: torch comes as all else
  std::string torch_index;                     // of a mirror: the address above those of the backends
  std::string index_strategy;                  // uv's --index-strategy; empty: uv's default
  bool build = true;                           // false: packages without a wheel are refused

  bool is_uv_lock() const { return lock_file && lock_file->filename() == "uv.lock"; }
};

// Takes its keys from `table`; throws Usage naming file, line and key. Paths are relative to `folder`.
PythonInputs read_python_inputs(TomlTable& table, const std::filesystem::path& folder);

// What the lock says of the indexes; without a default_index it is UV_DEFAULT_INDEX, less its password, if that is set.
LockedIndexes locked_indexes(const PythonInputs& inputs);

// Arguments of uv that name the indexes. A default that only UV_DEFAULT_INDEX names is not among them: uv reads it
// itself, with its password, which a list of processes would show.
std::vector<std::string> index_words(const PythonInputs& inputs);

}  // namespace sealift::packager
