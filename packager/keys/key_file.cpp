// SPDX-License-Identifier: Apache-2.0
// Reads keys; see key_file.hpp. The mode is that of the open file, so it is the mode of what is read.
#include "packager/keys/key_file.hpp"

#include <sys/stat.h>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {
constexpr std::uint64_t kMaxKeyFile = 65536;

std::string first_line(std::string text) {
  return text.substr(0, std::min(text.find('\n'), text.size()));
}
}  // namespace

std::string read_passphrase(const std::filesystem::path& file) {
  if (file.empty()) {
    const char* given = std::getenv("SEALIFT_PASSPHRASE");
    return given != nullptr ? given : "";
  }
  std::string passphrase = first_line(bundle::read_text(file, kMaxKeyFile));
  if (passphrase.empty()) throw Error(ErrorCode::Usage, {.what = "the passphrase is empty", .where = file.string()});
  return passphrase;
}

bundle::PrivateKey read_private_key(const std::filesystem::path& file, const std::string& passphrase) {
  const bundle::InputFile opened(file);
  struct stat status {};
  if (::fstat(opened.descriptor(), &status) != 0) bundle::throw_errno("a key cannot be examined", file);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw Error(ErrorCode::Usage, {.what = "a private key can be read by others, so it may not be private any more",
                                   .where = file.string(),
                                   .expected = "mode 0600",
                                   .next = "if nobody can have copied it: chmod 600 '" + file.string() +
                                           "'; otherwise revoke it and make another"});
  return bundle::PrivateKey::from_pem(bundle::read_text(file, kMaxKeyFile), file.string(), passphrase);
}

bundle::PublicKey read_public_key(const std::filesystem::path& file) {
  return bundle::PublicKey::from_pem(bundle::read_text(file, kMaxKeyFile), file.string());
}

}  // namespace sealift::packager
