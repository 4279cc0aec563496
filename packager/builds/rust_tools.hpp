// SPDX-License-Identifier: Apache-2.0
// Where rustup has put cargo: into the home of who packs, which a build does not see. Programs and toolchains hold no
// secret, so a build gets these two folders, to read; logins and downloads, which cargo keeps beside them, it does not.
#pragma once

#include <filesystem>
#include <optional>

namespace sealift::packager {

struct RustTools {
  std::filesystem::path programs;    // has cargo
  std::filesystem::path toolchains;  // rustup's, which these programs start; empty: there are none
};

// $CARGO_HOME/bin, or ~/.cargo/bin; where rustup puts its programs, whether they are there or not.
std::filesystem::path rust_programs();

// Nothing where there is no cargo.
std::optional<RustTools> find_rust();

}  // namespace sealift::packager
