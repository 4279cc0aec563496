// SPDX-License-Identifier: Apache-2.0
// Job files, locks, target profiles and results of golden runs, told apart by the first byte. A lock that is accepted
// is written and read back as the same value.
#include "packager/job/golden_file.hpp"
#include "packager/job/job.hpp"
#include "packager/lock/lock.hpp"
#include "packager/tables/target_profile.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  static const TempDir dir;  // both are read from files
  if (text.empty()) return;
  const bool lock = text.front() == 'l';
  if (text.front() == 'p') {
    accepted([&] { packager::parse_profile(text.substr(1), "x.toml"); });
    return;
  }
  write_file(dir / "x.toml", text.substr(1));
  if (text.front() == 'g') {
    accepted([&] { packager::read_golden_result(dir / "x.toml", "tiny"); });
    return;
  }
  accepted([&] {
    if (!lock) {
      packager::read_job(dir / "x.toml");
      return;
    }
    const packager::Lock read = packager::read_lock(dir / "x.toml");
    write_file(dir / "x.toml", write_lock(read, dir.path()));
    must(packager::read_lock(dir / "x.toml") == read, "what was written reads back");
  });
}
