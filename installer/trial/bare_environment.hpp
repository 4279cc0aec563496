// SPDX-License-Identifier: Apache-2.0
// The environment in which programs of a generation are tried. It is made here, so that nothing of the host
// (LD_LIBRARY_PATH, PYTHONPATH) makes a broken generation look whole.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sealift::installer {

// `scratch` serves as HOME and TMPDIR.
inline std::vector<std::string> bare_environment(const std::filesystem::path& program,
                                                 const std::filesystem::path& scratch) {
  return {"PATH=" + program.parent_path().string() + ":/usr/bin:/bin", "HOME=" + scratch.string(),
          "TMPDIR=" + scratch.string(), "LANG=C.UTF-8"};
}

}  // namespace sealift::installer
