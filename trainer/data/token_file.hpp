// SPDX-License-Identifier: Apache-2.0
// A token file that is read from where it lies, a sequence at a time.
// The loop opens one for training and one for evaluation; everything else sees its view.
// Apart from the view, which must not need the system or libcrypto to be fuzzed.
#pragma once

#include "trainer/data/token_view.hpp"

#include <filesystem>
#include <memory>

namespace sealift::trainer {

/// Copies share the open file.
class TokenFile {
 public:
  /// Opens; std::invalid_argument as TokenView, and where the system refuses. A file that is cut or cannot be read
  /// while it is in use is an error of the call that reads: nothing is mapped.
  static TokenFile open(const std::filesystem::path& path);

  const TokenView& view() const { return *view_; }
  const TokenView* operator->() const { return view_.get(); }

  /// Reads the whole file and holds it to its SHA-256 and every token to the vocabulary. Once a run, by one process of
  /// a host: gigabytes a second.
  void check_content() const;

 private:
  std::shared_ptr<const TokenBytes> bytes_;
  std::shared_ptr<const TokenView> view_;
};

}  // namespace sealift::trainer
