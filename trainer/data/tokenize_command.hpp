// SPDX-License-Identifier: Apache-2.0
// The command that tokenizes: a Python, the scripts of data/tokenize that this program carries, and its arguments.
// For the verb `tokenize`, which becomes that process.
// Python, because what defines a model's tokens are `tokenizers` and the template language jinja2; carried, so that
// program and scripts are always of one version.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sealift::trainer {

/// The Python to use: `chosen` if that is not empty; else the one beside `program`, as in an installed prefix; else
/// "python3" of PATH.
std::string python_for(const std::string& chosen, const std::filesystem::path& program);

/// argv: `python`, its options, the scripts, `arguments`. The scripts do not see the working directory's modules.
std::vector<std::string> tokenize_command(const std::string& python, const std::vector<std::string>& arguments);

}  // namespace sealift::trainer
