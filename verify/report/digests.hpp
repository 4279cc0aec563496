// SPDX-License-Identifier: Apache-2.0
// The digest list of a report: the bytes that the site's key signs, one line of SHA-256 for each file of the report.
// Between the report's folder and its signature; this program never sees the key.
// A text that `sha256sum -c` takes and people can read before they sign, and that has one spelling only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sealift::verify {

inline constexpr const char* kDigestsFile = "report.digests";
inline constexpr const char* kSignatureFile = "report.digests.sig";

/// The list of the report in `folder`: what the report says of itself as comments, then the files of kReportFiles.
/// Throws std::invalid_argument when a file is missing or report.json is no report.
std::string digest_list(const std::filesystem::path& folder);

/// The first page that is not what report.json gives, by this version of the program; nothing: all are.
std::optional<std::string> foreign_page(const std::filesystem::path& folder);

/// The first difference between `list` and the files in `folder`, in words; nothing: they agree.
std::optional<std::string> difference_from_digests(const std::string& list, const std::filesystem::path& folder);

/// The hexadecimal SHA-256 of `bytes`.
std::string sha256_of(const std::string& bytes);

}  // namespace sealift::verify
