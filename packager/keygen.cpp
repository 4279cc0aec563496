// SPDX-License-Identifier: Apache-2.0
// Makes a key; see keygen.hpp.
#include "packager/keygen.hpp"

#include "sealift/bundle/payload_writer.hpp"
#include "sealift/bundle/signature.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

bundle::Digest keygen(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) bundle::throw_errno("the folder for the key cannot be made", folder, error.value());
  for (const char* name : {"release.key", "release.pub", "release.fingerprint"})
    if (fs::exists(fs::symlink_status(folder / name, error)))
      throw Error(ErrorCode::Conflict, {.what = "there is a key here already; keys are never overwritten",
                                        .where = (folder / name).string(),
                                        .next = "use it, or name another folder"});
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  const bundle::Digest fingerprint = key.public_key().fingerprint();
  bundle::write_text(folder / "release.key", key.to_pem(), 0600);
  bundle::write_text(folder / "release.pub", key.public_pem());
  bundle::write_text(folder / "release.fingerprint", "sha256:" + fingerprint.hex() + "\n");
  return fingerprint;
}

}  // namespace sealift::packager
