// SPDX-License-Identifier: Apache-2.0
// Puts the libraries that a gathered interpreter needs beside it, so that it finds them there and nowhere else.
// native_closure finds them on this machine.
#pragma once

#include <filesystem>

#include "packager/files/tree.hpp"
#include "packager/interpreter/interpreter_facts.hpp"
#include "packager/libraries/native_closure.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Adds to `resolver` what the tree's ELF files need, drops extension modules whose libraries are not on this machine
// (with a warning), and puts all libraries of `resolver`, with libstdc++ and libgcc_s, into lib/. Files that need
// another search path are copied to `scratch` and changed there with `patchelf`.
void carry_libraries(Tree& tree, const Interpreter& interpreter, NativeResolver& resolver, bundle::GlibcVersion target,
                     const std::filesystem::path& patchelf, const std::filesystem::path& scratch,
                     bundle::Progress& progress);

}  // namespace sealift::packager
