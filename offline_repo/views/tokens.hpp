// SPDX-License-Identifier: Apache-2.0
// Who may fetch: a site's file of tokens, and what a client's Authorization header says. The file holds digests only,
// so its reader cannot fetch with it.
// Instead of a token a client may have a certificate, where the server asks for them (tls.hpp).
// A line is: NAME SHA256-OF-THE-TOKEN, or NAME certificate:COMMON-NAME; then [bundle:NAME | bundle:NAME-VERSION |
// channel:CHANNEL]…; '#' begins a comment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::offline_repo {

struct Token {
  std::string name;  // of its holder, for the audit log
  bundle::Digest sha256;
  std::string certificate = {};          // a common name, which counts instead of a token; empty: a token does
  std::vector<std::string> grants = {};  // as the file spells them; none: every bundle

  bool sees(const bundle::Manifest& manifest) const;
};

// Throws Format naming `where` and the line.
std::vector<Token> parse_tokens(std::string_view text, const std::string& where);

// The same from a file, or from the target of a link. Throws Usage when others than its owner may change it, or
// others than its owner and group read it, and when the owner is neither root nor this user.
std::vector<Token> read_tokens(const std::filesystem::path& path);

// The token in the header: "Bearer TOKEN", or of "Basic BASE64" the password, and the user where that is empty.
// Nothing for any other text. Hostile text; a pure function.
std::optional<std::string> token_in(std::string_view authorization);

// The one whose digest is the token's; null when there is none. Takes as long for a wrong token as for a right one.
const Token* find_token(const std::vector<Token>& tokens, std::string_view token);
// The one with this common name; null when there is none, or it is empty.
const Token* find_certificate(const std::vector<Token>& tokens, std::string_view common_name);

}  // namespace sealift::offline_repo
