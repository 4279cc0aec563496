// SPDX-License-Identifier: Apache-2.0
// The folder that a site files: report.json and the pages drawn from it.
// Last in `run`; first in `diff`, `sign` and `check-signature`, which read a report that somebody else may have made.
// The pages are drawn from the bytes of report.json, so that anyone can draw them again and compare.
#pragma once

#include "verify/pages/pages.hpp"

#include <array>
#include <filesystem>

namespace sealift::verify {

inline constexpr std::array kReportFiles{"report.html", "report.json", "report.txt", "report.zh.html", "report.zh.txt"};
inline constexpr std::uintmax_t kMostReportBytes = 64u << 20;

/// Writes the five files of kReportFiles. Throws std::invalid_argument when a file cannot be written.
void write_report(const Verdict& verdict, const std::filesystem::path& folder);

/// Removes them, where they are: a run that ends early must not leave an earlier run's verdict as its own.
void remove_report(const std::filesystem::path& folder);

/// A regular file of at most `most` bytes. Throws std::invalid_argument naming the file and what is wrong.
std::string read_bounded(const std::filesystem::path& file, std::uintmax_t most = kMostReportBytes);

/// Reads report.json strictly. Throws std::invalid_argument naming the file and the key at fault.
Verdict read_report(const std::filesystem::path& file);

/// The pages of `verdict` in the order of kReportFiles; that of report.json is "".
std::array<std::string, kReportFiles.size()> pages_of(const Verdict& verdict);

}  // namespace sealift::verify
