// SPDX-License-Identifier: Apache-2.0
// Every row of the preflight, from made facts: when it is good, when it warns, when it refuses, and with which remedy.
#include "installer/preflight_run.hpp"

#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using bundle::Error;
using bundle::ErrorCode;
using Verdict = Finding::Verdict;

namespace {

// A machine, a place and a bundle between which nothing is wrong; each case spoils one thing.
struct Facts {
  bundle::Manifest manifest;
  Machine machine;
  Ground ground;
  Plan plan;
  bundle::Time now = *bundle::parse_time("2026-06-01T00:00:00Z");

  Facts() {
    manifest.name = "env";
    manifest.version = 3;
    manifest.created = "2026-05-01T00:00:00Z";
    manifest.target = {.arch = "x86_64", .glibc = {2, 28}};
    machine.target = {.arch = "x86_64",
                      .glibc = {2, 36},
                      .glibcxx = "3.4.30",
                      .cxxabi = "1.3.13",
                      .kernel = "6.1.0-13-amd64",
                      .cpu = "x86-64-v4",
                      .gpus = {"8 x NVIDIA H200"},
                      .driver = "580.65.06"};
    machine.libc = "/lib/libc.so.6";
    machine.shared_memory = std::uint64_t{64} << 30;
    machine.locale = "en_US.UTF-8";
    machine.compiler = "/usr/bin/cc";
    ground.path = "/opt/ai";
    ground.mount.type = 0xef53;
    plan.needed_bytes = 1000;
    plan.needed_inodes = 10;
    plan.free = {.bytes = 2000, .inodes = 20};
  }
  std::vector<Finding> all() const { return preflight(manifest, machine, ground, plan, now); }
  Finding row(const std::string& check) const {
    for (const Finding& finding : all())
      if (finding.check == check) return finding;
    FAIL("there is no row " << check);
    return {};
  }
};

// One row is not good, says `text` in what it expects, got or says, and has a remedy; all the others are good.
void check_only(const Facts& facts, const std::string& check, Verdict verdict, const std::string& text) {
  INFO(check);
  for (const Finding& finding : facts.all()) {
    INFO(finding.check);
    CHECK(finding.verdict == (finding.check == check ? verdict : Verdict::Ok));
  }
  const Finding row = facts.row(check);
  const std::string said = row.facts.what + "|" + row.facts.expected + "|" + row.facts.got;
  INFO(said);
  CHECK(said.find(text) != std::string::npos);
  CHECK((verdict == Verdict::Ok || (!row.facts.next.empty() && !row.facts.what.empty())));
}

bundle::Manifest with_driver_floor(bundle::Manifest manifest) {
  manifest.driver_floor = "580";
  return manifest;
}

}  // namespace

TEST_CASE("where nothing is wrong every row is good and nothing is refused") {
  const Facts facts;
  for (const Finding& finding : facts.all()) CHECK_MESSAGE(finding.verdict == Verdict::Ok, finding.check);
  CHECK(warnings_of(facts.all()).empty());
  refuse_failures(facts.all(), facts.manifest);
}

TEST_CASE("architecture and C libraries below the bundle's floor are refused") {
  Facts facts;
  SUBCASE("architecture") {
    facts.machine.target.arch = "aarch64";
    check_only(facts, "architecture", Verdict::Fail, "aarch64");
  }
  SUBCASE("glibc") {
    facts.machine.target.glibc = {2, 17};
    check_only(facts, "glibc", Verdict::Fail, "glibc 2.28 or newer|glibc 2.17");
  }
  SUBCASE("libstdc++ of an older compiler") {
    facts.manifest.target.glibcxx = "3.4.31";
    check_only(facts, "libstdc++", Verdict::Fail, "GLIBCXX_3.4.31|GLIBCXX_3.4.30");
  }
  SUBCASE("versions are compared as numbers") {
    facts.manifest.target.glibcxx = "3.4.9";
    check_only(facts, "libstdc++", Verdict::Ok, "GLIBCXX_3.4.9");
  }
  SUBCASE("the runtime beside it") {
    facts.manifest.target.cxxabi = "1.3.15";
    check_only(facts, "libstdc++", Verdict::Fail, "CXXABI_1.3.15");
  }
  SUBCASE("no libstdc++ warns, and refuses where the bundle asks for one") {
    facts.machine.target.glibcxx = facts.machine.target.cxxabi = "";
    check_only(facts, "libstdc++", Verdict::Warn, "no libstdc++");
    facts.manifest.target.glibcxx = "3.4.24";
    check_only(facts, "libstdc++", Verdict::Fail, "no libstdc++");
  }
}

TEST_CASE("kernel and processor: what cannot start is refused, what is slow or hangs is warned of") {
  Facts facts;
  SUBCASE("a kernel of RHEL 8 or Kylin V10") {
    facts.machine.target.kernel = "4.19.90-52.22.v2207.ky10.x86_64";
    check_only(facts, "kernel", Verdict::Warn, "5.5 or newer|4.19.90");
  }
  SUBCASE("a kernel of RHEL 6") {
    facts.machine.target.kernel = "2.6.32-754.el6.x86_64";
    check_only(facts, "kernel", Verdict::Fail, "3.2 or newer");
  }
  SUBCASE("no AVX2") {
    facts.machine.target.cpu = "x86-64-v2";
    check_only(facts, "processor", Verdict::Warn, "x86-64-v2");
    facts.manifest.target.cpu = "x86-64-v3";
    check_only(facts, "processor", Verdict::Fail, "x86-64-v3|x86-64-v2");
  }
  SUBCASE("a processor that is not known") {
    facts.machine.target.cpu = "";
    facts.manifest.target.cpu = "x86-64-v4";
    check_only(facts, "processor", Verdict::Warn, "not known");
  }
}

TEST_CASE("an older driver than the bundle's floor is refused; none at all, as on a login node, is warned of") {
  Facts facts;
  facts.manifest = with_driver_floor(facts.manifest);
  SUBCASE("newer") {
    check_only(facts, "driver", Verdict::Ok, "driver 580 or newer|driver 580.65.06");
  }
  SUBCASE("older") {
    facts.machine.target.driver = "535.183.01";
    check_only(facts, "driver", Verdict::Fail, "driver 580 or newer|driver 535.183.01");
  }
  SUBCASE("not loaded") {
    facts.machine.target.driver = "";
    check_only(facts, "driver", Verdict::Warn, "not loaded");
  }
  SUBCASE("no GPU") {
    facts.machine.target.gpus.clear();
    check_only(facts, "GPUs", Verdict::Warn, "no GPU");
  }
  SUBCASE("a bundle without CUDA asks for neither") {
    facts.manifest.driver_floor = "";
    facts.machine.target.driver = "";
    facts.machine.target.gpus.clear();
    check_only(facts, "driver", Verdict::Ok, "none");
  }
}

TEST_CASE("shared memory, locale, clock and compiler only warn") {
  Facts facts;
  SUBCASE("a container's 64 MiB of /dev/shm") {
    facts.machine.shared_memory = std::uint64_t{64} << 20;
    check_only(facts, "/dev/shm", Verdict::Warn, "67.1 MB");
  }
  SUBCASE("no /dev/shm") {
    facts.machine.shared_memory.reset();
    check_only(facts, "/dev/shm", Verdict::Warn, "no /dev/shm");
  }
  SUBCASE("texts in GB 18030") {
    facts.machine.locale = "zh_CN.GB18030";
    check_only(facts, "locale", Verdict::Warn, "zh_CN.GB18030");
  }
  SUBCASE("spellings of UTF-8, and what Python takes for it") {
    for (const char* locale : {"zh_CN.utf8", "C.UTF-8", "C", "POSIX", ""}) {
      facts.machine.locale = locale;
      check_only(facts, "locale", Verdict::Ok, "");
    }
  }
  SUBCASE("a clock that was never set") {
    facts.now = *bundle::parse_time("1970-01-01T00:00:00Z");
    check_only(facts, "time", Verdict::Warn, "1970");
  }
  SUBCASE("no compiler, for a bundle with triton") {
    facts.machine.compiler = "";
    check_only(facts, "glibc", Verdict::Ok, "");  // without triton nobody asks
    facts.manifest.entries.push_back({.path = bundle::SafePath::parse("wheels/triton-3.6.0-cp311-none-any.whl", ""),
                                      .kind = bundle::EntryKind::Wheel});
    check_only(facts, "compiler", Verdict::Warn, "triton");
  }
}

TEST_CASE("the file system: refused where nothing can live, warned of where it has a catch") {
  Facts facts;
  const auto on = [&](long type, Verdict verdict, const std::string& text) {
    facts.ground.mount.type = type;
    check_only(facts, "file system", verdict, text);
  };
  on(0x4d44, Verdict::Fail, "FAT, which has no links");
  on(0x2011BAB0, Verdict::Fail, "exFAT");
  on(0x6969, Verdict::Warn, "NFS");
  on(0x01021994, Verdict::Warn, "tmpfs");
  on(0xff534d42, Verdict::Warn, "no hard links");
  on(0x58465342, Verdict::Ok, "XFS");
  on(0x12345, Verdict::Ok, "not known");
  facts.ground.mount.no_exec = true;
  on(0xef53, Verdict::Fail, "noexec");
  facts.ground.mount.read_only = true;
  on(0xef53, Verdict::Fail, "read-only");
}

TEST_CASE("permission, case, space and inodes") {
  Facts facts;
  SUBCASE("somebody else's folder") {
    facts.ground.writable = false;
    check_only(facts, "permission", Verdict::Fail, "may not write");
    CHECK_REFUSED(refuse_failures(facts.all(), facts.manifest), Io, "/opt/ai");
  }
  SUBCASE("upper and lower case are one") {
    facts.ground.folds_case = true;
    check_only(facts, "case", Verdict::Warn, "one name");
  }
  SUBCASE("space") {
    facts.plan.free.bytes = 999;
    check_only(facts, "space", Verdict::Fail, "1000 bytes free|999 bytes free");
    CHECK_REFUSED(refuse_failures(facts.all(), facts.manifest), Space, "999 bytes free");
  }
  SUBCASE("inodes") {
    facts.plan.free.inodes = 9;
    check_only(facts, "inodes", Verdict::Fail, "10 inodes free|9 inodes free");
  }
}

TEST_CASE("all that is wrong is told in one refusal, with each remedy; its code is that of the first") {
  Facts facts;
  facts.manifest = with_driver_floor(facts.manifest);
  facts.machine.target.driver = "535.183.01";
  facts.ground.mount.no_exec = true;
  facts.plan.free.bytes = 1;
  const Error error = refusal([&] { refuse_failures(facts.all(), facts.manifest); });
  CHECK(error.code() == ErrorCode::Platform);
  for (const char* part : {"3 reasons", "driver 535.183.01", "update the driver", "noexec", "1 bytes free", "env-3"})
    CHECK_MESSAGE(mentions(error, part), part);
}

TEST_CASE("apply refuses before anything is made, and the verb of its own prints every row instead") {
  Site site;
  TinyBundle tiny;
  tiny.glibc = {2, 39};
  const MadeBundle made = site.make(tiny);
  SmallDisk small({.bytes = 10, .inodes = 1});
  const Error error = refusal([&] { site.apply(made, small); });
  CHECK(error.code() == ErrorCode::Platform);
  CHECK(mentions(error, "glibc 2.39 or newer"));
  CHECK(mentions(error, "10 bytes free"));
  CHECK(mentions(error, "1 inodes free"));
  CHECK(!fs::exists(site.prefix().root()));
  const ApplyOptions options{.bundle = made.folder,
                             .prefix = site.prefix(),
                             .fingerprint = made.trusted.state.pinned,
                             .now = kNow,
                             .machine = site.machine};
  const PreflightRun result = run_preflight(options, small);
  CHECK(exit_code_of(result) == 8);
  CHECK(json_of(result)["fails"] == 3);
  CHECK(json_of(result)["findings"].size() == result.findings.size());
  const std::string text = text_of(result);
  CHECK(text.find("FAIL  glibc") != std::string::npos);
  CHECK(text.find("OK    kernel") != std::string::npos);
  CHECK(text.find("cannot be installed here: 3 failed") != std::string::npos);
  CHECK(!fs::exists(site.prefix().root()));
  site.machine.target.glibc = {2, 39};
  Disk disk;
  CHECK(site.apply(made, disk).findings.size() == result.findings.size());
}

TEST_CASE("the ground is looked at through the nearest folder that exists, without leaving a trace") {
  const TempDir dir;
  fs::create_directory(dir / "Some");
  const Disk disk;
  const auto before = snapshot(dir.path());
  const Ground ground = look_at_ground(Prefix(dir / "Some/not/there"), disk);
  CHECK(ground.writable);
  CHECK_FALSE(ground.folds_case);
  CHECK(snapshot(dir.path()) == before);
  // What a folder without case looks like: a name and its other case are one file.
  write_file(dir / "Some/letters", "x");
  fs::create_hard_link(dir / "Some/letters", dir / "Some/LETTERS");
  CHECK(look_at_ground(Prefix(dir / "Some/not/there"), disk).folds_case);
}
