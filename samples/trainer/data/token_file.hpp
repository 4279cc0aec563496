// SPDX-License-Identifier: Apache-2.0
// A token file that is mapped into memory.
// The loop opens one for training and one for evaluation; everything else sees its view.
// Apart from the view, which must not need the system or libcrypto to be fuzzed.
#pragma once

#include "data/token_view.hpp"

#include <filesystem>
#include <memory>

namespace sealift::trainer {

/// Copies share the memory.
class TokenFile {
 public:
  /// Opens and maps; std::invalid_argument as TokenView, and where the system refuses. The file must not
  /// be changed while it is in use.
  static TokenFile open(const std::filesystem::path& path);

  const TokenView& view() const { return *view_; }
  const TokenView* operator->() const { return view_.get(); }

  /// Reads the whole file and holds it to its SHA-256 and every token to the vocabulary. Once a run, by one process of
  /// a host: gigabytes a second.
  void check_content() const;

 private:
  std::shared_ptr<const std::byte> memory_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const TokenView> view_;
};

}  // namespace sealift::trainer
