// SPDX-License-Identifier: Apache-2.0
// `apply --compile-bytecode`: compiles every Python module once, since a read-only prefix cannot store the result later
// and each process would compile again. Written into the generation, so that the store holds only what was signed.
#pragma once

#include <chrono>

#include "installer/layout/layout.hpp"

namespace sealift::installer {

struct BytecodeCount {
  std::uint64_t compiled = 0;
  std::uint64_t passed_over = 0;  // not valid for this Python: templates, tests of other versions
};

// Runs `threads` interpreters of the generation at once; `scratch` holds their lists and answers. Throws SelfTest when
// one fails.
BytecodeCount compile_bytecode(const bundle::Environment& environment, const Layout& layout,
                               const std::filesystem::path& generation, const std::filesystem::path& scratch,
                               unsigned threads, std::chrono::seconds patience = std::chrono::minutes(30));

}  // namespace sealift::installer
