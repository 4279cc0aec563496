// SPDX-License-Identifier: Apache-2.0
// A pin's file repeats its name, so that a copy that went wrong is noticed instead of trusting nobody or somebody else.
// Written beside and renamed: a pin is there whole or not at all.
#include "installer/trust_store.hpp"

#include <algorithm>

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {
std::string text_of_pin(const bundle::Digest& fingerprint) {
  return "sha256:" + fingerprint.hex() + "\n";
}
}  // namespace

bundle::TrustedKeys pinned_keys(const Prefix& prefix) {
  bundle::TrustedKeys keys;
  std::error_code error;
  if (!fs::exists(prefix.trust(), error)) return keys;
  fs::directory_iterator pins(prefix.trust(), error);
  if (error) bundle::throw_errno("the pinned keys cannot be read", prefix.trust(), error.value());
  for (const fs::directory_entry& pin : pins) {
    const std::optional<bundle::Digest> fingerprint = bundle::Digest::from_hex(pin.path().filename().string());
    if (!fingerprint) continue;  // what a crash left beside
    if (bundle::read_text(pin.path(), 4096) != text_of_pin(*fingerprint))
      throw bundle::Error(bundle::ErrorCode::Format,
                          {.what = "a pinned key's file was changed",
                           .where = pin.path().string(),
                           .expected = "sha256:" + fingerprint->hex(),
                           .next = "remove the file and pin the key again with: sealift-install trust add"});
    keys.fingerprints.push_back(*fingerprint);
  }
  std::sort(keys.fingerprints.begin(), keys.fingerprints.end());
  return keys;
}

bool pin_key(const Prefix& prefix, Disk& disk, const bundle::Digest& fingerprint) {
  if (pinned_keys(prefix).contains(fingerprint)) return false;
  disk.make_folders(prefix.trust());
  const fs::path beside = prefix.trust() / ("new-" + std::to_string(::getpid()));
  disk.remove_tree(beside);
  disk.write_new(beside, text_of_pin(fingerprint), 0444);
  disk.sync_all(prefix.trust());
  disk.rename(beside, prefix.trust() / fingerprint.hex());
  disk.sync_folder(prefix.trust());
  return true;
}

}  // namespace sealift::installer
