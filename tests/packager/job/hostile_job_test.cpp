// SPDX-License-Identifier: Apache-2.0
// C01: hostile job files are refused with file, line and key.
#include "tests/support/hostile/hostile_job.hpp"
#include "packager/job/job.hpp"
#include "packager/tables/toml_file.hpp"
#include "tests/support/hostile/time_limit.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::test;

TEST_CASE("C01: hostile job files are refused, and the good one is not") {
  const TempDir dir;
  const auto read = [&](const std::string& text) {
    write_file(dir / "job.toml", text);
    return packager::read_job(dir / "job.toml");
  };
  CHECK(read(good_job()).name == "air-gap");
  // Other languages have their place in texts and comments, and editors put a byte order mark before all.
  CHECK(read("\xef\xbb\xbf" + good_job() + "# \u01b4\n# \u6d77\u8fd0").name == "air-gap");
  // Debian's toml++ 3.3 went wrong on an 'é' here.
  const auto value = packager::parse_toml("a = \"\"\"\\\n  \u00e9\"\"\"", "job.toml", bundle::ErrorCode::Usage);
  CHECK(value.members.at("a").text == "\u00e9");
  for (const HostileCase& hostile : hostile_jobs()) {
    CAPTURE(hostile.name);
    const bundle::Error error = in_time([&] { read(hostile.bytes); });
    INFO(error.what());
    CHECK(error.code() == hostile.code);
    CHECK(mentions(error, hostile.word));
    CHECK(mentions(error, hostile.file));
    CHECK(std::string(error.what()).size() < 10'000);
  }
}
