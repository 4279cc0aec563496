// SPDX-License-Identifier: Apache-2.0
// What uv's messages tell: which package it stopped at, who asked for that, and what it warns of. uv has no other form
// for these facts than its sentences (uv 0.13); what is not understood here is shown as it stands (uv_refusal.hpp).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sealift::packager {

// A release of an index that comes as source, and of which uv cannot tell what it requires without running its code.
struct SourceQuestion {
  std::string name;  // normalized
  std::string version;
  std::string needed_by;  // "oss2 2.19.1, for ms-swift 4.6.0"; empty when uv does not say

  std::string title() const { return name + " " + version; }
};

// The package at which uv stopped; nothing when it stopped for another reason.
std::optional<SourceQuestion> question_in(const std::string& message);

// The address of a wheel whose metadata uv did not find, though its index promises it, or whose '+' its server does not
// read; nothing in other messages.
std::optional<std::string> unread_wheel_in(const std::string& message);

// The packages without a wheel: "Wheels are required for `NAME`".
std::set<std::string> named_without_wheel(const std::string& message);

// The folders, repositories and archives that uv may not build to learn about them: "Failed to build `NAME @ …`".
std::set<std::string> named_unbuildable(const std::string& message);

// Who needs `name`, from uv's explanation, as " (needed by ms-swift==4.6.0)"; empty when it does not say.
std::string needed_by(const std::string& message, const std::string& name);

// uv's warnings, one each, without the word, and the releases that it skipped because it cannot read them, which it
// tells only in its log (kTellsSkipped).
inline constexpr const char* kTellsSkipped = "uv_resolver=warn";  // of RUST_LOG
std::vector<std::string> warnings_in(const std::string& message);

}  // namespace sealift::packager
