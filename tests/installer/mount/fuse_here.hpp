// SPDX-License-Identifier: Apache-2.0
// Whether this machine has FUSE, and what tests ask of what is mounted by it. Where it has none, a line says so.
#pragma once

#include <signal.h>

#include <chrono>
#include <thread>

#include "bundle/core/json.hpp"
#include "installer/host/fuse_needs.hpp"
#include "installer/mount/fuse_ready.hpp"
#include "tests/installer/program.hpp"
#include "tests/support/left_out.hpp"

namespace sealift::test {

inline bool fuse_is_there(bool as_root) {
  installer::FuseNeeds needs = installer::fuse_needs_here();
  needs.root = needs.root && as_root;
  try {
    installer::require_fuse(needs);
    return true;
  } catch (const bundle::Error& error) {
    left_out(error.what());
    return false;
  }
}

// Waits, for seconds at most, for a server to go away.
inline bool ends(int process) {
  for (int i = 0; i < 500; ++i) {
    if (::kill(process, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

inline int process_of(const Outcome& mounted) {
  return bundle::parse_json(mounted.out, "stdout").at("process").get<int>();
}

inline std::string read_error(const fs::path& path) {
  const bundle::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return "cannot be opened";
  char piece[65536];
  for (;;) {
    const ssize_t count = ::read(file.get(), piece, sizeof piece);
    if (count < 0) return errno == EIO ? "EIO" : "another error";
    if (count == 0) return "";
  }
}

}  // namespace sealift::test
