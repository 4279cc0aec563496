// SPDX-License-Identifier: Apache-2.0
// A site's file of tokens as an operator writes it, and what clients send of one.
#pragma once

#include <filesystem>
#include <string>

#include "sealift/bundle/core/digest.hpp"
#include "tests/support/temp_dir.hpp"

namespace sealift::test {

inline std::string token_line(const std::string& name, const std::string& token, const std::string& grants = "") {
  return name + " " + bundle::sha256(bundle::as_bytes(token)).hex() + " " + grants + "\n";
}

inline void write_tokens(const std::filesystem::path& path, const std::string& text) {
  write_file(path, text);
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

inline std::string bearer(const std::string& token) {
  return "Authorization: Bearer " + token + "\r\n";
}

}  // namespace sealift::test
