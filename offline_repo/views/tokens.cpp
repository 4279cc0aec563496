// SPDX-License-Identifier: Apache-2.0
// Digests are compared, never tokens, and all of them each time: how long it takes tells nothing about either.
#include "offline_repo/views/tokens.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "bundle/host/require_trusted.hpp"
#include "offline_repo/protocols/header_text.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::size_t kMaxTokenFile = std::size_t{4} << 20;

[[noreturn]] void refuse_token_line(const std::string& where, std::size_t number, const std::string& what) {
  throw bundle::Error(
      bundle::ErrorCode::Format,
      {.what = what,
       .where = where + ":" + std::to_string(number),
       .expected =
           "NAME SHA256, or NAME certificate:COMMON-NAME, [bundle:NAME | bundle:NAME-VERSION | channel:CHANNEL]…",
       .next = "printf %s TOKEN | sha256sum prints a token's digest"});
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(" \t\r", begin)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

bool is_token_name(const std::string& name) {
  return name.size() <= 100 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

Token token_of(const std::vector<std::string>& words, const std::string& where, std::size_t number) {
  constexpr std::string_view kCertificate = "certificate:";
  const std::string second = words.size() > 1 ? words[1] : std::string();
  std::string certificate = second.starts_with(kCertificate) ? second.substr(kCertificate.size()) : std::string();
  const std::optional<bundle::Digest> digest =
      certificate.empty() ? bundle::Digest::from_hex(lower_case(second)) : bundle::Digest{};
  if (!is_token_name(words[0])) refuse_token_line(where, number, "a name is at most 100 characters of printable ASCII");
  if (!digest) refuse_token_line(where, number, "the SHA-256 of a token is 64 hexadecimal digits");
  if (!certificate.empty() && !is_token_name(certificate))
    refuse_token_line(where, number, "a common name here is at most 100 characters of printable ASCII");
  Token token{.name = words[0],
              .sha256 = *digest,
              .certificate = std::move(certificate),
              .grants = {words.begin() + 2, words.end()}};
  for (const std::string& grant : token.grants)
    if (!grant.starts_with("bundle:") && !grant.starts_with("channel:"))
      refuse_token_line(where, number, "what a token sees is bundle:… or channel:…");
  return token;
}

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// RFC 4648, with the padding that it prescribes or with none.
std::optional<std::string> base64_decoded(std::string_view text) {
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    const int value = sextet(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<unsigned>(value)) & 0xffff;
    if ((count += 6) >= 8) out.push_back(static_cast<char>(bits >> (count -= 8) & 0xff));
  }
  return out;
}

bool equal_in_constant_time(const bundle::Digest& a, const bundle::Digest& b) {
  volatile unsigned different = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i)
    different = different | static_cast<unsigned>(a.bytes[i] ^ b.bytes[i]);
  return different == 0;
}

}  // namespace

bool Token::sees(const bundle::Manifest& manifest) const {
  return grants.empty() || std::any_of(grants.begin(), grants.end(), [&](const std::string& grant) {
           return grant == "bundle:" + manifest.name || grant == "bundle:" + manifest.stem() ||
                  grant == "channel:" + manifest.channel;
         });
}

std::vector<Token> parse_tokens(std::string_view text, const std::string& where) {
  std::vector<Token> tokens;
  std::set<std::string> names, certificates;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    tokens.push_back(token_of(words, where, number));
    if (!names.insert(tokens.back().name).second) refuse_token_line(where, number, "a name stands twice");
    const std::string& certificate = tokens.back().certificate;
    if (!certificate.empty() && !certificates.insert(certificate).second)
      refuse_token_line(where, number, "a certificate's name stands twice");
  }
  return tokens;
}

std::vector<Token> read_tokens(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) bundle::throw_errno("the file of tokens cannot be read", path);
  const auto refuse = [&](const char* what, const std::string& next) {
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = what,
                         .where = path.string(),
                         .expected = "written by its owner, who is root or this user; read by owner and group alone",
                         .next = next + " '" + path.string() + "'"});
  };
  if ((found.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) refuse("others may read or change the tokens", "chmod 640");
  if (found.st_uid != 0 && found.st_uid != ::geteuid()) refuse("the tokens are another user's", "chown root");
  bundle::require_trusted_path(path, bundle::Above::Site, "another user may put other tokens here");
  return parse_tokens(bundle::read_text(std::filesystem::canonical(path), kMaxTokenFile), path.string());
}

std::optional<std::string> token_in(std::string_view authorization) {
  authorization = trimmed(authorization);
  const std::size_t space = authorization.find(' ');
  if (space == authorization.npos) return std::nullopt;
  const std::string scheme = lower_case(authorization.substr(0, space));
  const std::string_view value = trimmed(authorization.substr(space));
  if (value.empty()) return std::nullopt;
  if (scheme == "bearer") return std::string(value);
  const std::optional<std::string> pair = scheme == "basic" ? base64_decoded(value) : std::nullopt;
  const std::size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos || pair->size() == 1) return std::nullopt;
  return colon + 1 < pair->size() ? pair->substr(colon + 1) : pair->substr(0, colon);
}

const Token* find_token(const std::vector<Token>& tokens, std::string_view token) {
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(token));
  const Token* found = nullptr;
  for (const Token& one : tokens)
    if (equal_in_constant_time(one.sha256, digest) && one.certificate.empty()) found = &one;
  return found;
}

const Token* find_certificate(const std::vector<Token>& tokens, std::string_view common_name) {
  const auto found = std::find_if(tokens.begin(), tokens.end(), [&](const Token& one) {
    return !common_name.empty() && one.certificate == common_name;
  });
  return found != tokens.end() ? &*found : nullptr;
}

}  // namespace sealift::offline_repo
