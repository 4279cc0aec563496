// SPDX-License-Identifier: Apache-2.0
// Texts as words of a shell. For the files that activate a prefix or a virtual environment, in each of their languages:
// no value may end up as a command.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

using Quote = std::function<std::string(const std::string&)>;

// `text` with each `word` in it replaced.
std::string replaced(std::string_view text, std::string_view word, const std::string& by);

// A template with each @WORD@ of `words` in it filled in, in one pass: what is filled in may hold such a word itself,
// as the name of a folder does that somebody chose, and stays as it is.
std::string filled(std::string_view text, const std::map<std::string, std::string, std::less<>>& words);

// In single quotes, for sh, or for csh, where `!` is history even there.
std::string quoted(const std::string& text, bool csh = false);

// A variable's value in a shell's words: its plain parts as `quote` writes them, and between them, joined by `joint`,
// what stands for the root of the environment and for the user's cache.
std::string expanded(std::string_view value, const Quote& quote, const std::string& root, const std::string& cache,
                     const std::string& joint = "");

// Lines for sh that set each variable, unless it is set, and note in _SEALIFT_SET what is to be unset again.
std::string in_sh(const bundle::Variables& variables, const std::string& root);

}  // namespace sealift::installer
