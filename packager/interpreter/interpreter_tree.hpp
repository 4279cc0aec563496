// SPDX-License-Identifier: Apache-2.0
// Gathers an interpreter into a tree that works wherever it is unpacked. It may be a distribution's (prefix /usr, of
// which only Python's parts are taken) or one with a prefix of its own. Its libraries: interpreter_libraries.hpp.
#pragma once

#include <filesystem>

#include "packager/files/tree.hpp"
#include "packager/interpreter/interpreter_facts.hpp"

namespace sealift::packager {

// Executable, standard library and headers, without tests, caches and modules that cannot work elsewhere.
Tree gather_interpreter(const Interpreter& interpreter, const std::filesystem::path& launcher);

}  // namespace sealift::packager
