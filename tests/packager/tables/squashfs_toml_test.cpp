// SPDX-License-Identifier: Apache-2.0
// [squashfs] in a job and in its lock.
#include "packager/tables/squashfs_toml.hpp"

#include <doctest/doctest.h>

#include "packager/job/job.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;

namespace {

const char* const kStart = "name = \"env\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.28\"\n";
const char* const kPython = "[python]\nversion = \"3.11\"\nrequirements = [\"demo\"]\n";

Job job_with(const TempDir& dir, const std::string& text) {
  write_file(dir / "job.toml", kStart + text);
  return read_job(dir / "job.toml");
}

}  // namespace

TEST_CASE("a job asks for an image by a table, which the lock keeps") {
  const TempDir dir;
  CHECK(job_with(dir, std::string(kPython) + "[squashfs]\n").squashfs.value().wheels);
  CHECK(!job_with(dir, std::string(kPython) + "[squashfs]\nwheels = false\n").squashfs.value().wheels);
  CHECK(!job_with(dir, kPython).squashfs.has_value());
  Workshop workshop;
  workshop.lock.squashfs.emplace();
  write_file(workshop.dir / "lock.toml", write_lock(workshop.lock, workshop.dir.path()));
  CHECK(read_lock(workshop.dir / "lock.toml") == workshop.lock);
  workshop.lock.squashfs->wheels = false;
  write_file(workshop.dir / "lock.toml", write_lock(workshop.lock, workshop.dir.path()));
  CHECK(read_lock(workshop.dir / "lock.toml") == workshop.lock);
  workshop.lock.squashfs.reset();
  write_file(workshop.dir / "lock.toml", write_lock(workshop.lock, workshop.dir.path()));
  CHECK(read_lock(workshop.dir / "lock.toml") == workshop.lock);
}

TEST_CASE("a job's image has no other keys, is of an environment, and is not called as container images are") {
  const TempDir dir;
  const auto refused = [&](const std::string& text, const char* word) {
    CHECK_REFUSED(job_with(dir, text), Usage, word);
  };
  refused(std::string(kPython) + "[squashfs]\nsurprise = true\n", "surprise");
  refused(std::string(kPython) + "[squashfs]\nwheels = 1\n", "wheels");
  refused(std::string(kPython) + "squashfs = true\n", "squashfs");
  refused(std::string(kPython) + "[[squashfs]]\n", "squashfs");
  refused("[squashfs]\n", "an interpreter, by [python]");
  refused(std::string(kPython) + "[image]\n", "container images are [[image]]");
}
