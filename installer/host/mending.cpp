// SPDX-License-Identifier: Apache-2.0
// A path is quoted only where a shell would read it otherwise, so that most commands look as people type them.
#include "installer/host/mending.hpp"

#include <algorithm>

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

namespace {

bool needs_no_quotes(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
}

std::string shell_word(const std::string& text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), needs_no_quotes)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string shell_option(const std::string& option, const std::filesystem::path& path) {
  return path.empty() ? "" : option + " " + shell_word(path.string());
}

bundle::Mending mending_here(const std::filesystem::path& bundle, const std::vector<std::filesystem::path>& volumes,
                             const std::string& trust) {
  std::string command = "sealift-install mend " + shell_word(bundle.string());
  if (!volumes.empty()) command += " --volumes";
  for (const std::filesystem::path& folder : volumes) command += " " + shell_word(folder.string());
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
