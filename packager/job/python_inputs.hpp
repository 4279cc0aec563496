// SPDX-License-Identifier: Apache-2.0
// What [python] of a job file asks for, in any of the forms that people have it in: requirements, a pyproject, a lock
// of uv or of PEP 751. Read by `job`, turned into uv's words by `resolve`; no other step looks at it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packager/job/toml_file.hpp"

namespace sealift::packager {

struct PythonIndex {
  std::string name;  // empty: it has none
  std::string url;
};

struct PythonInputs {
  std::vector<std::string> requirements;  // a folder in one is relative to the job file
  std::optional<std::filesystem::path> requirements_file;
  std::optional<std::filesystem::path> pyproject;  // what it depends on, not the project itself
  std::vector<std::string> extras, groups;         // of the pyproject, or of the project of a uv.lock
  std::optional<std::filesystem::path> lock_file;  // pylock.toml, pylock.NAME.toml or uv.lock: taken as it is
  std::vector<std::string> constraints;
  std::vector<std::string> build_constraints;  // of what builds need
  std::optional<std::string> default_index;    // instead of uv's
  std::vector<PythonIndex> indexes;            // asked before it
  std::string index_strategy;                  // uv's word; empty: uv's own
  bool build = true;                           // false: refuse what has no wheel

  bool is_uv_lock() const { return lock_file && lock_file->filename() == "uv.lock"; }
};

// Takes its keys from `table`; throws Usage naming file, line and key. Paths are relative to `folder`.
PythonInputs read_python_inputs(TomlTable& table, const std::filesystem::path& folder);

// The words for `uv pip compile` and `uv export` that say where to look.
std::vector<std::string> index_words(const PythonInputs& inputs);

}  // namespace sealift::packager
