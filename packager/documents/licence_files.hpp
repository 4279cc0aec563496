// SPDX-License-Identifier: Apache-2.0
// Copies the licence files of wheels out of a bundle, for people to read. Neither names nor bytes
// are trusted: each wheel gets one flat folder, plain names that end in .txt (a LICENSE.html must not open in a
// browser), and bounds on sizes and numbers. What is left out is reported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "packager/documents/wheel_facts.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

inline constexpr std::uint64_t kMaxLicenceFile = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kMaxLicenceBytes = std::uint64_t{32} << 20;  // of one wheel
inline constexpr std::size_t kMaxLicenceFiles = 500;                        // of one wheel

// Plain names in place of untrusted ones, each unique.
class PlainNames {
 public:
  // Letters, digits, '.', '_', '-', '+' of `text`, at most 120 of them, then `suffix`; "_" is added until it is new.
  std::string take(std::string_view text, std::string_view suffix = "");

 private:
  std::set<std::string> taken_;  // in lower case
};

struct CollectedLicences {
  std::vector<std::string> files;     // names in the wheel's folder
  std::vector<std::string> left_out;  // "NAME: why", fit to be shown
};

// Writes into the new folder `folder`, which is only made when there is something to put there. Files count that
// License-File names or that are called LICENSE, LICENCE, COPYING or NOTICE (and more letters) in the .dist-info.
CollectedLicences collect_licences(bundle::Wheel& wheel, const WheelFacts& facts, const std::filesystem::path& folder);

}  // namespace sealift::packager
