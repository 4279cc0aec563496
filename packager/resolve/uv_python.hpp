// SPDX-License-Identifier: Apache-2.0
// The Python that uv gets when it resolves: it tells uv about itself and runs nothing else. uv may take sources then,
// as it does for everybody, and where it would run a source's code to learn what that requires, it ends with our words
// instead. What it asks about is answered from the sandbox (packager/python), and uv is asked again.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sealift::packager {

// What this Python says to everything but uv's question about itself; uv repeats it.
inline constexpr std::string_view kRunsNothing = "sealift: no code of a package is run while uv resolves";

class UvPython {
 public:
  // Writes a program into `folder` that answers as `python`. `version` is that of the Python that is carried
  // ("3.11.2"): releases and markers are chosen for it.
  UvPython(const std::filesystem::path& python, std::string version, const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const std::string& version() const { return version_; }

  // Has uv ask about a project whose build would leave a file behind. Throws CannotCheck unless uv ends with our words
  // and there is no file: another uv may have another way to its Python.
  void require_silence(const std::filesystem::path& uv, const std::filesystem::path& scratch) const;

 private:
  std::filesystem::path path_;
  std::string version_;
};

}  // namespace sealift::packager
