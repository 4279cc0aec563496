// SPDX-License-Identifier: Apache-2.0
// Reads keys; see key_file.hpp. The mode is that of the open file, so it is the mode of what is read.
#include "packager/keys/key_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {
constexpr std::uint64_t kMaxKeyFile = 65536;

std::string first_line(std::string text) {
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

// Before its mode, which is rightly that of something everybody may read.
void refuse_public_key(const bundle::InputFile& opened, const std::filesystem::path& file) {
  static constexpr std::string_view kPublic = "-----BEGIN PUBLIC KEY-----";
  std::string start(std::min<std::uint64_t>(opened.size(), kPublic.size()), '\0');
  opened.read_exactly(0, std::as_writable_bytes(std::span(start.data(), start.size())));
  if (start != kPublic) return;
  const std::filesystem::path beside = std::filesystem::path(file).replace_extension(".key");
  throw Error(ErrorCode::Usage, {.what = "this is a public key, which checks signatures and cannot make them",
                                 .where = file.string(),
                                 .expected = "a private key, as `sealift-pack keygen` wrote it to NAME.key",
                                 .next = "--key '" + beside.string() + "', if that is where it is kept"});
}

// The text of a file that only its owner can read. Mode and bytes are those of one descriptor, so that no other file
// can take the path's place in between.
std::string read_secret(const std::filesystem::path& file, const char* what, const std::string& next) {
  const bundle::InputFile opened(file);
  refuse_public_key(opened, file);
  struct stat status {};
  if (::fstat(opened.descriptor(), &status) != 0) bundle::throw_errno("a file cannot be examined", file);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error(ErrorCode::Usage,
                {.what = what, .where = file.string(), .expected = "mode 0600", .got = {}, .next = next});
  if (opened.size() > kMaxKeyFile)
    throw Error(ErrorCode::Format, {.what = "a file is too large for what it should hold",
                                    .where = file.string(),
                                    .expected = "at most " + std::to_string(kMaxKeyFile) + " bytes"});
  std::string text(opened.size(), '\0');
  opened.read_exactly(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}
}  // namespace

std::string read_passphrase(const std::filesystem::path& file) {
  if (file.empty()) {
    const char* given = std::getenv("SEALIFT_PASSPHRASE");
    return given != nullptr ? given : "";
  }
  std::string passphrase = first_line(
      read_secret(file, "a passphrase can be read by others, so it protects nothing",
                  "chmod 600 '" + file.string() + "', and give the key a new passphrase if somebody can have read it"));
  if (passphrase.empty()) throw Error(ErrorCode::Usage, {.what = "the passphrase is empty", .where = file.string()});
  return passphrase;
}

bundle::PrivateKey read_private_key(const std::filesystem::path& file, const std::string& passphrase) {
  const std::string pem = read_secret(
      file, "a private key can be read by others, so it may not be private any more",
      "if nobody can have copied it: chmod 600 '" + file.string() + "'; otherwise revoke it and make another");
  return bundle::PrivateKey::from_pem(pem, file.string(), passphrase);
}

bundle::PublicKey read_public_key(const std::filesystem::path& file) {
  return bundle::PublicKey::from_pem(bundle::read_text(file, kMaxKeyFile), file.string());
}

}  // namespace sealift::packager
