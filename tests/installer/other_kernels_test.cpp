// SPDX-License-Identifier: Apache-2.0
// The real sealift-install where the kernel, a container's filter or a file system answers otherwise than a new one:
// calls that are refused with EPERM, locks of an open file that are not known, no locks at all.
#include <sys/file.h>

#include "tests/installer/program.hpp"
#include "tests/support/refused_calls.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using namespace sealift::bundle;

namespace {

MadeBundle bundle_of(const Site& site) {
  TinyBundle tiny{.arch = probe().target.arch, .chunk_size = 65536};
  tiny.items = {wheel_item({}), file_item("files/a", numbers_text(1, 500'000), "share/a")};
  return site.make(tiny);
}

std::vector<std::string> apply_words(const Site& site, const MadeBundle& made) {
  return {"apply", made.folder, "--fingerprint", made.fingerprint(), "--prefix", site.prefix().folder()};
}

// As runtimes with a libseccomp of before 2020 do: what is newer than their list is not permitted.
void as_older_runtime() {
  refuse_calls({{SYS_faccessat2, EPERM}, {SYS_clone3, EPERM}, {SYS_openat2, EPERM}, {SYS_close_range, EPERM}});
}
void without_own_locks() {
  refuse_calls({{SYS_fcntl, EINVAL, F_OFD_GETLK, F_OFD_SETLKW}});
}
void without_locks() {
  refuse_calls({{SYS_fcntl, ENOSYS, F_OFD_GETLK, F_OFD_SETLKW}, {SYS_flock, ENOSYS}});
}

}  // namespace

TEST_CASE("calls that an older container runtime refuses with EPERM are made in the older way") {
  const Site site;
  const MadeBundle made = bundle_of(site);
  const Outcome outcome = run(site.dir, apply_words(site, made), nullptr, as_older_runtime);
  INFO(outcome.err);
  CHECK(outcome.exit == 0);
  CHECK(read_file(site.current() / "share/a") == numbers_text(1, 500'000));
}

TEST_CASE("a kernel without locks of open files gets flock, which keeps a second run out as well") {
  const Site site;
  const MadeBundle made = bundle_of(site);
  Outcome outcome = run(site.dir, apply_words(site, made), nullptr, without_own_locks);
  INFO(outcome.err);
  CHECK(outcome.exit == 0);
  const Descriptor lock(::open(site.prefix().lock().c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  outcome = run(site.dir, {"gc", "--prefix", site.prefix().folder()}, nullptr, without_own_locks);
  CHECK(outcome.exit == 10);
  CHECK(outcome.err.find("somebody else is changing this prefix") != std::string::npos);
}

TEST_CASE("a file system without locks is said to need them, with Lustre's option") {
  const Site site;
  const Outcome outcome = run(site.dir, apply_words(site, bundle_of(site)), nullptr, without_locks);
  INFO(outcome.err);
  CHECK(outcome.exit == 3);
  CHECK(outcome.err.find("a file system with locks") != std::string::npos);
  CHECK(outcome.err.find("Lustre: the mount option flock") != std::string::npos);
}
