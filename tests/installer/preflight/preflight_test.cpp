// SPDX-License-Identifier: Apache-2.0
// Every row of the preflight, from made facts: when it is good, when it warns, when it refuses, and with which remedy.
#include "installer/preflight/preflight_run.hpp"
#include "installer/print/preflight_report.hpp"

#include <functional>

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
  PrefixFilesystem filesystem;
  InstallPlan plan;
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
    machine.authorities = "/etc/pki/tls/certs/ca-bundle.crt";
    machine.time_zones = true;
    filesystem.path = "/opt/ai";
    filesystem.mount.type = 0xef53;
    plan.needed_bytes = 1000;
    plan.needed_inodes = 10;
    plan.free = {.bytes = 2000, .inodes = 20};
  }
  std::vector<Finding> all() const { return preflight(manifest, machine, filesystem, plan, now); }
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

// One thing spoilt, and the row that tells of it.
struct Spoilt {
  const char* what;
  std::function<void(Facts&)> spoil;
  const char* row;
  Verdict verdict;
  const char* text;
};

void check_each(const std::vector<Spoilt>& cases) {
  for (const Spoilt& one : cases) {
    INFO(one.what);
    Facts facts;
    one.spoil(facts);
    check_only(facts, one.row, one.verdict, one.text);
  }
}

}  // namespace

TEST_CASE("a good machine has every row good, and nothing is refused") {
  const Facts facts;
  for (const Finding& finding : facts.all()) CHECK_MESSAGE(finding.verdict == Verdict::Ok, finding.check);
  CHECK(warnings_of(facts.all()).empty());
  refuse_failures(facts.all(), facts.manifest);
}

TEST_CASE("what mounting an image lacks is told, and warns of nothing") {
  Facts facts;
  CHECK(facts.row("mount").facts.got == "there");
  facts.machine.fuse = "/dev/fuse: No such file or directory; root loads the kernel's module";
  check_only(facts, "mount", Verdict::Ok, "root loads the kernel's module");
  CHECK(warnings_of(facts.all()).empty());
}

TEST_CASE("architecture and C libraries below the bundle's floor are refused") {
  const auto no_libstdcxx = [](Facts& facts) { facts.machine.target.glibcxx = facts.machine.target.cxxabi = ""; };
  check_each({
      {"architecture", [](Facts& facts) { facts.machine.target.arch = "aarch64"; }, "architecture", Verdict::Fail,
       "aarch64"},
      {"glibc",
       [](Facts& facts) {
         facts.machine.target.glibc = {2, 17};
       },
       "glibc", Verdict::Fail, "glibc 2.28 or newer|glibc 2.17"},
      {"libstdc++ of an older compiler", [](Facts& facts) { facts.manifest.target.glibcxx = "3.4.31"; }, "libstdc++",
       Verdict::Fail, "GLIBCXX_3.4.31|GLIBCXX_3.4.30"},
      {"versions are compared as numbers", [](Facts& facts) { facts.manifest.target.glibcxx = "3.4.9"; }, "libstdc++",
       Verdict::Ok, "GLIBCXX_3.4.9"},
      {"the runtime beside it", [](Facts& facts) { facts.manifest.target.cxxabi = "1.3.15"; }, "libstdc++",
       Verdict::Fail, "CXXABI_1.3.15"},
      {"no libstdc++", no_libstdcxx, "libstdc++", Verdict::Warn, "no libstdc++"},
      {"no libstdc++ for a bundle that asks for one",
       [&](Facts& facts) { no_libstdcxx(facts), facts.manifest.target.glibcxx = "3.4.24"; }, "libstdc++", Verdict::Fail,
       "no libstdc++"},
  });
}

TEST_CASE("kernel and processor: what cannot start is refused, what is slow or hangs is warned of") {
  const auto on = [](const char* kernel) { return [=](Facts& facts) { facts.machine.target.kernel = kernel; }; };
  const auto with = [](const char* cpu, const char* asked) {
    return [=](Facts& facts) { facts.machine.target.cpu = cpu, facts.manifest.target.cpu = asked; };
  };
  check_each({
      {"a kernel of RHEL 8 or Kylin V10", on("4.19.90-52.22.v2207.ky10.x86_64"), "kernel", Verdict::Warn,
       "5.5 or newer|4.19.90"},
      {"a kernel of RHEL 6", on("2.6.32-754.el6.x86_64"), "kernel", Verdict::Fail, "3.2 or newer"},
      {"no AVX2", with("x86-64-v2", ""), "processor", Verdict::Warn, "x86-64-v2"},
      {"no AVX2 for a bundle that asks for it", with("x86-64-v2", "x86-64-v3"), "processor", Verdict::Fail,
       "x86-64-v3|x86-64-v2"},
      {"a processor that is not known", with("", "x86-64-v4"), "processor", Verdict::Warn, "not known"},
  });
}

TEST_CASE("an older driver than the bundle's floor is refused; none at all, as on a login node, is warned of") {
  const auto with = [](const char* floor, const char* driver, bool has_gpus) {
    return [=](Facts& facts) {
      facts.manifest.driver_floor = floor;
      facts.machine.target.driver = driver;
      if (!has_gpus) facts.machine.target.gpus.clear();
    };
  };
  check_each({
      {"newer", with("580", "580.65.06", true), "driver", Verdict::Ok, "driver 580 or newer|driver 580.65.06"},
      {"older", with("580", "535.183.01", true), "driver", Verdict::Fail, "driver 580 or newer|driver 535.183.01"},
      {"not loaded", with("580", "", true), "driver", Verdict::Warn, "not loaded"},
      {"no GPU", with("580", "580.65.06", false), "GPUs", Verdict::Warn, "no GPU"},
      {"a bundle without CUDA asks for neither", with("", "", false), "driver", Verdict::Ok, "none"},
  });
}

TEST_CASE(
    "GPUs that a component has no code for are refused with the component, or warned of where the job overruled it") {
  const auto with = [](const char* gpu, const char* images, std::vector<std::string> overruled = {}) {
    return [=](Facts& facts) {
      facts.manifest.gpu_code = {{"torch-2.11.0", images}, {"triton-3.6.0", "compute_60"}};
      facts.manifest.overruled = overruled;
      facts.machine.target.gpus = {"1 x NVIDIA H200", gpu};
    };
  };
  check_each({
      {"V100", with("8 x Tesla V100-SXM2-32GB", "sm_75 sm_90"), "GPU code", Verdict::Fail,
       "8 x Tesla V100-SXM2-32GB can run|code for sm_70|torch-2.11.0 (for sm_75 sm_90)"},
      {"overruled", with("8 x Tesla V100-SXM2-32GB", "sm_75 sm_90", {"driver", "gpu"}), "GPU code", Verdict::Warn,
       "torch-2.11.0"},
      {"newer, by PTX", with("8 x NVIDIA B200", "sm_90 compute_90"), "GPU code", Verdict::Ok, "sm_90, code for sm_100"},
      {"newer, without", with("8 x NVIDIA B200", "sm_90"), "GPU code", Verdict::Fail, "code for sm_100"},
      {"not known", with("8 x NVIDIA Z900", "sm_90"), "GPU code", Verdict::Warn, "8 x NVIDIA Z900"},
      {"words of a later packer", with("8 x NVIDIA B200", "sm_90 lto_90"), "GPU code", Verdict::Ok, ""},
      {"a driver that the job overruled",
       [](Facts& facts) {
         facts.manifest.driver_floor = "580", facts.manifest.overruled = {"driver"};
         facts.machine.target.driver = "535.183.01";
       },
       "driver", Verdict::Warn, "driver 580 or newer|driver 535.183.01"},
  });
  Facts cpu;  // no row without code, and none without GPUs
  for (const Finding& finding : cpu.all()) CHECK(finding.check != "GPU code");
}

TEST_CASE("shared memory, locale, clock and compiler only warn") {
  const auto in = [](const char* locale) { return [=](Facts& facts) { facts.machine.locale = locale; }; };
  const auto no_compiler = [](Facts& facts) { facts.machine.compiler = ""; };
  check_each({
      {"a container's 64 MiB of /dev/shm", [](Facts& facts) { facts.machine.shared_memory = std::uint64_t{64} << 20; },
       "/dev/shm", Verdict::Warn, "67.1 MB"},
      {"no /dev/shm", [](Facts& facts) { facts.machine.shared_memory.reset(); }, "/dev/shm", Verdict::Warn,
       "no /dev/shm"},
      {"texts in GB 18030", in("zh_CN.GB18030"), "locale", Verdict::Warn, "zh_CN.GB18030"},
      {"a clock that was never set", [](Facts& facts) { facts.now = *bundle::parse_time("1970-01-01T00:00:00Z"); },
       "time", Verdict::Warn, "1970"},
      {"without triton nobody asks for a compiler", no_compiler, "glibc", Verdict::Ok, ""},
      {"no compiler, for a bundle with triton",
       [&](Facts& facts) {
         no_compiler(facts);
         facts.manifest.entries.push_back(
             {.path = bundle::SafePath::parse("wheels/triton-3.6.0-cp311-none-any.whl", ""),
              .kind = bundle::EntryKind::Wheel});
       },
       "compiler", Verdict::Warn, "triton"},
      {"no compiler on the host, for a bundle that carries one beside triton",
       [&](Facts& facts) {
         no_compiler(facts);
         for (const std::string path : {"programs/libexec/sealift/cc", "wheels/triton-3.6.0-cp311-none-any.whl"})
           facts.manifest.entries.push_back(
               {.path = bundle::SafePath::parse(path, ""),
                .kind = path.ends_with(".whl") ? bundle::EntryKind::Wheel : bundle::EntryKind::File});
       },
       "compiler", Verdict::Ok, ""},
      {"no certificate authorities", [](Facts& facts) { facts.machine.authorities = ""; }, "certificates",
       Verdict::Warn, "none where Debian, EL or SUSE have them"},
      {"no time zones", [](Facts& facts) { facts.machine.time_zones = false; }, "time zones", Verdict::Warn, "neither"},
      {"no time zones, for a bundle that carries them",
       [](Facts& facts) {
         facts.machine.time_zones = false;
         facts.manifest.entries.push_back(
             {.path = bundle::SafePath::parse("wheels/tzdata-2026.1-py2.py3-none-any.whl", ""),
              .kind = bundle::EntryKind::Wheel});
       },
       "time zones", Verdict::Ok, ""},
  });
  for (const char* locale : {"zh_CN.utf8", "C.UTF-8", "C", "POSIX", ""})  // UTF-8, and what Python takes for it
    check_each({{locale, in(locale), "locale", Verdict::Ok, ""}});
}

TEST_CASE("the file system: refused where nothing can live, warned of where it has a catch") {
  Facts facts;
  const auto on = [&](long type, Verdict verdict, const std::string& text) {
    facts.filesystem.mount.type = type;
    check_only(facts, "file system", verdict, text);
  };
  on(0x4d44, Verdict::Fail, "FAT, which has no links");
  on(0x2011BAB0, Verdict::Fail, "exFAT");
  on(0x9fa0, Verdict::Fail, "proc, which shows the kernel's own data");
  on(0x62656572, Verdict::Fail, "sysfs");
  on(0x6969, Verdict::Warn, "NFS");
  on(0x01021994, Verdict::Warn, "tmpfs");
  on(0xff534d42, Verdict::Warn, "no hard links");
  on(0x58465342, Verdict::Ok, "XFS");
  on(0x12345, Verdict::Ok, "not known");
  facts.filesystem.mount.no_exec = true;
  on(0xef53, Verdict::Fail, "noexec");
  facts.filesystem.mount.read_only = true;
  on(0xef53, Verdict::Fail, "read-only");
}

TEST_CASE("permission, case, space and inodes") {
  Facts facts;
  SUBCASE("somebody else's folder") {
    facts.filesystem.writable = false;
    check_only(facts, "permission", Verdict::Fail, "may not write");
    CHECK_REFUSED(refuse_failures(facts.all(), facts.manifest), Io, "/opt/ai");
  }
  SUBCASE("upper and lower case are one") {
    facts.filesystem.folds_case = true;
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

TEST_CASE("one refusal tells all faults, with each remedy; its code is that of the first") {
  Facts facts;
  facts.manifest.driver_floor = "580";
  facts.machine.target.driver = "535.183.01";
  facts.filesystem.mount.no_exec = true;
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
  CHECK(!fs::exists(site.prefix().folder()));
  const PreflightRun result = site.preflight(site.options(made), small);
  CHECK(exit_code_of(result) == 8);
  CHECK(json_of(result)["fails"] == 3);
  CHECK(json_of(result)["findings"].size() == result.findings.size());
  const std::string text = text_of(result);
  CHECK(text.find("FAIL  glibc") != std::string::npos);
  CHECK(text.find("OK    kernel") != std::string::npos);
  CHECK(text.find("cannot be installed here: 3 failed") != std::string::npos);
  CHECK(!fs::exists(site.prefix().folder()));
  site.machine.target.glibc = {2, 39};
  Disk disk;
  CHECK(site.apply(made, disk).findings.size() == result.findings.size());
}

TEST_CASE("the prefix's file system is examined through the nearest folder that exists, without leaving a trace") {
  const TempDir dir;
  fs::create_directory(dir / "Some");
  const Disk disk;
  const auto before = snapshot(dir.path());
  const PrefixFilesystem filesystem = probe_prefix_filesystem(Prefix(dir / "Some/not/there"), disk);
  CHECK(filesystem.writable);
  CHECK_FALSE(filesystem.folds_case);
  CHECK(snapshot(dir.path()) == before);
  // What a folder without case looks like: a name and its other case are one file.
  write_file(dir / "Some/letters", "x");
  fs::create_hard_link(dir / "Some/letters", dir / "Some/LETTERS");
  CHECK(probe_prefix_filesystem(Prefix(dir / "Some/not/there"), disk).folds_case);
}
