// SPDX-License-Identifier: Apache-2.0
// Signed files of which a medium has damaged some: every copy in every folder is open, also one that is cut short, and
// gives what is right in it. What is missing or cannot be read is a finding here, not an end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// What one read is to give.
struct SignedRange {
  std::size_t file = 0;      // its number
  std::uint64_t offset = 0;  // in that file
  Digest digest;
};

// Safe from several threads once made.
class SurvivingFiles {
 public:
  SurvivingFiles(const std::vector<std::filesystem::path>& folders, const std::vector<Volume>& files);

  // Whether there is a copy of this file at all, and whether one has the signed size.
  bool is_there(std::size_t file) const { return !copies_[file].empty(); }
  // Why no copy of this file is of its size: Missing, Digest, or what opening it said. Nothing where one is.
  const std::optional<Error>& fault(std::size_t file) const { return faults_[file]; }

  // Whether some copy is long enough to hold `size` bytes at this place.
  bool reaches(const SignedRange& range, std::uint64_t size) const;

  // Fills `out`; what went wrong, if no copy has the signed bytes: Digest, Io, or fault(). `what` names them.
  // `passed_over` gets what was wrong with an earlier copy.
  std::optional<Error> read(const SignedRange& range, std::span<std::byte> out, DigestAlgorithm algorithm,
                            const std::string& what, std::optional<Error>* passed_over = nullptr) const;
  // Announces it. A hint.
  void will_need(const SignedRange& range, std::uint64_t size) const;

 private:
  void look(const std::filesystem::path& path, const Volume& file, std::size_t number);

  std::vector<Volume> names_;
  std::vector<std::vector<InputFile>> copies_;  // by file
  std::vector<std::optional<Error>> faults_;    // by file
};

}  // namespace sealift::bundle
