// SPDX-License-Identifier: Apache-2.0
// `apply --compile-bytecode`: Python's own compiled form of every module, made once, since a read-only prefix cannot
// keep it later and each process would compile again. Into the generation, so the store holds only what was signed.
#pragma once

#include <chrono>

#include "installer/layout/layout.hpp"

namespace sealift::installer {

struct BytecodeCount {
  std::uint64_t compiled = 0;
  std::uint64_t passed_over = 0;  // not of this Python: templates, tests of other versions
};

// By `threads` interpreters of the generation at once; `scratch` takes lists and answers. Throws SelfTest when one of
// them fails.
BytecodeCount compile_bytecode(const bundle::Environment& environment, const Layout& layout,
                               const std::filesystem::path& generation, const std::filesystem::path& scratch,
                               unsigned threads, std::chrono::seconds patience = std::chrono::minutes(30));

}  // namespace sealift::installer
