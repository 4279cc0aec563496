// SPDX-License-Identifier: Apache-2.0
// An OpenPGP key that signs what apt and dnf read. gpg signs, on the connected side, so that a key may lie on a card;
// the bundle's own signature then vouches for the key, which travels along.
#pragma once

#include <string>

#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Whose key, and for what: words of messages.
struct GpgUse {
  std::string option;   // "--apt-key"
  std::string client;   // "apt"
  std::string indexed;  // "the Debian packages"
};

class GpgKey {
 public:
  // The secret key with this fingerprint (40 hexadecimal digits) in gpg's keyring (GNUPGHOME). Warns when it ends some
  // day. Throws Usage when the fingerprint is malformed, Missing without gpg or the key.
  GpgKey(std::string fingerprint, GpgUse use, bundle::Progress& progress);

  // Armored. They throw Io when gpg does not sign.
  std::string detached_signature(const std::string& text) const;
  std::string clear_signed(const std::string& text) const;
  std::string public_key() const;

 private:
  std::string signed_text(const std::string& text, const char* how) const;

  std::string fingerprint_;
  GpgUse use_;
};

}  // namespace sealift::packager
