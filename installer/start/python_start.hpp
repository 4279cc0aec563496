// SPDX-License-Identifier: Apache-2.0
// What sealift-start sees to before it becomes Python: that no modules of the user's come before the signed ones
// unasked, and that bytecode goes to each user's cache instead of into a generation, where nobody signed it. Here and
// not in activation alone, since most jobs start PREFIX/current/bin/python by its path.
#pragma once

#include <string_view>

#include "installer/start/given.hpp"

namespace sealift::installer {

// Below the user's cache; in it a folder for each bundle, and in that Python's copy of the whole path.
inline constexpr std::string_view kBytecodeFolder = "/sealift/pycache";

// Sets Python's variables for the environment at `root`, unless the user has; `name` is the program's (python3.11),
// `cache` the folder that the user's variables name, or null: bytecode goes there where nobody else may write it.
// Returned are the given arguments; where they tell Python to ignore its variables (-I, -E), with an option about
// bytecode before them.
Given prepare_python(const char* root, const char* name, const char* cache, const Given& given);

}  // namespace sealift::installer
