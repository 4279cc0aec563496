// SPDX-License-Identifier: Apache-2.0
// Builds one wheel from one source archive: with the target's Python, in an environment of its own whose packages are
// pinned by hash, in a sandbox without a network, at a fixed path and a fixed time, so that the same source and the
// same tools give the same bytes. The hooks are those of PEP 517; uv makes the environment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packager/builds/build_order.hpp"

namespace sealift::packager {

struct BuiltWheel {
  std::filesystem::path file;  // under `place`
  std::vector<std::string> requirements;
};

// The versions of uv and of the compiler, in one line.
std::string describe_tools(const BuildTools& tools);

// Builds below `place`, a folder that is emptied first and that nobody else may use. Throws SelfTest with the last
// lines of the build's log, Network when its requirements cannot be fetched, CannotCheck where there is no sandbox.
BuiltWheel build_wheel(const BuildOrder& order, const BuildTools& tools, const std::filesystem::path& place);

// The METADATA that the wheel would have, by the backend's own hook and without compiling anything; nothing where the
// backend has no such hook, and only a build tells. Otherwise as build_wheel.
std::optional<std::string> prepare_metadata(const BuildOrder& order, const BuildTools& tools,
                                            const std::filesystem::path& place);

}  // namespace sealift::packager
