// SPDX-License-Identifier: Apache-2.0
// Is a prefix still what was signed? Every file of store and generations is hashed and compared with the record that
// was made from verified bytes. With a bundle, the records too are compared with the signed ones, and what is wrong is
// repaired from the bundle's verified bytes.
#pragma once

#include <optional>

#include "installer/doctor/checkup.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct DoctorOptions {
  Prefix prefix;
  std::filesystem::path repair;  // the bundle to repair from; empty: only check
  bool relink = false;           // files of generations that were copied become the store's again
  bundle::Time now = bundle::system_time();
  unsigned threads = 1;
};

// Throws Missing when there is no prefix, and the refusal when the bundle cannot be verified. Without `repair` and
// `relink` nothing is written and no prefix lock is taken.
Checkup doctor(const DoctorOptions& options, Disk& disk, bundle::Progress& progress);

// The exit code: that of the worst finding; none when there is no finding.
std::optional<bundle::ErrorCode> verdict(const Checkup& checkup);

}  // namespace sealift::installer
