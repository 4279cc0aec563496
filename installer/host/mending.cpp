// SPDX-License-Identifier: Apache-2.0
// See mending.hpp; the commands are there to be pasted.
#include "installer/host/mending.hpp"

#include "bundle/core/shell_word.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

std::string shell_option(const std::string& option, const std::filesystem::path& path) {
  return path.empty() ? "" : option + " " + bundle::shell_word(path.string());
}

bundle::Mending mending_here(const std::filesystem::path& bundle, const std::vector<std::filesystem::path>& volumes,
                             const std::string& trust) {
  std::string command = "sealift-install mend " + bundle::shell_word(bundle.string());
  if (!volumes.empty()) command += " --volumes";
  for (const std::filesystem::path& folder : volumes) command += " " + bundle::shell_word(folder.string());
  return {.while_reading = true, .command = command + (trust.empty() ? "" : " " + trust) + " --into FOLDER"};
}

std::string text_of(const std::vector<bundle::MendedVolume>& mended) {
  std::string text;
  for (const bundle::MendedVolume& volume : mended)
    text +=
        (text.empty() ? "" : ", ") +
        (volume.chunks == 0 ? "the wrong size"
                            : std::to_string(volume.chunks) + " chunk(s) (" + bundle::human_size(volume.bytes) + ")") +
        " of " + volume.name;
  return text;
}

}  // namespace sealift::installer
