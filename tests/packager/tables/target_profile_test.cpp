// SPDX-License-Identifier: Apache-2.0
// Target profiles: what a job takes from one, what is said of each fault, and what the shipped ones promise.
#include "packager/tables/target_profile.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "packager/job/job.hpp"
#include "packager/lock/lock.hpp"
#include "packager/resolve/pylock.hpp"
#include "sealift/bundle/manifest/target_profile.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

const bundle::Target kHost{.arch = "x86_64",
                           .glibc = {2, 28},
                           .glibcxx = "3.4.24",
                           .cxxabi = "1.3.11",
                           .distribution = "kylin V10",
                           .kernel = "4.19.90-52.22.v2207.ky10.x86_64",
                           .cpu = "x86-64-v4",
                           .flags = {"avx512_vnni", "amx_bf16"},
                           .gpus = {"8 x NVIDIA H200"},
                           .driver = "580.65.06",
                           .python = {"3.7"},
                           .crypto = {"libcrypto 1.1"},
                           .free_gib = 812};

// What probe printed, with one change of it.
std::string changed(const std::string& old_text, const std::string& new_text) {
  std::string text = bundle::write_profile(kHost);
  REQUIRE(text.find(old_text) != text.npos);
  return text.replace(text.find(old_text), old_text.size(), new_text);
}

// The same without the check line, so that the value itself is judged.
std::string unchecked(const std::string& old_text, const std::string& new_text) {
  std::string text = changed(old_text, new_text);
  return text.substr(0, text.find("check ="));
}

bundle::Target parse(const std::string& text) {
  return parse_profile(text, "site.toml");
}

Job job_with(const TempDir& dir, const std::string& target) {
  write_file(dir / "job.toml", "name = \"demo\"\nversion = 1\n[target]\n" + target +
                                   "\n[python]\nversion = \"3.11\"\nrequirements = [\"demo\"]\n");
  return read_job(dir / "job.toml");
}

}  // namespace

TEST_CASE("a profile is read as it was printed, however it is spaced, ordered and commented when it was typed") {
  CHECK(parse(bundle::write_profile(kHost)) == kHost);
  CHECK(parse(unchecked("format = 1\n", "format = 1\n")) == kHost);
  std::string typed = changed("kernel = ", "# the kernel\n   kernel=");
  typed = "check = \"" + bundle::profile_check(kHost) + "\"\n" + typed.substr(0, typed.find("check ="));
  CHECK(parse(typed) == kHost);
  const bundle::Target small{.arch = "x86_64", .glibc = {2, 28}};
  CHECK(bundle::write_profile(small) ==
        "format = 1\narch = \"x86_64\"\nglibc = \"2.28\"\ncheck = \"" + bundle::profile_check(small) + "\"\n");
  CHECK(parse(bundle::write_profile(small)) == small);
}

TEST_CASE("the check of a profile is the start of the SHA-256 of its lines, so that anybody can make it again") {
  // printf 'arch = "x86_64"\nglibc = "2.28"\n' | sha256sum
  CHECK(bundle::profile_check({.arch = "x86_64", .glibc = {2, 28}}) == "ede1f898");
}

TEST_CASE("one mistyped character anywhere is noticed by the check line") {
  for (const auto& [old_text, new_text] :
       std::vector<std::pair<std::string, std::string>>{{"2.28", "2.26"},
                                                        {"3.4.24", "3.4.42"},
                                                        {"1.3.11", "1.3.12"},
                                                        {"kylin V10", "kylin v10"},
                                                        {"ky10", "ky1O"},
                                                        {"x86-64-v4", "x86-64-v3"},
                                                        {"avx512_vnni", "avx512_vnn1"},
                                                        {"8 x NVIDIA", "6 x NVIDIA"},
                                                        {"580.65.06", "580.65.08"},
                                                        {"\"3.7\"", "\"3.9\""},
                                                        {"libcrypto 1.1", "libcrypto 1.l"},
                                                        {"812", "821"},
                                                        {"check = \"", "check = \"0"}}) {
    INFO(new_text);
    CHECK_REFUSED(parse(changed(old_text, new_text)), Usage, "mistyped");
  }
}

TEST_CASE("a fault in a profile is refused with file, line and key") {
  CHECK_REFUSED(parse(changed("kernel =", "kernal =")), Usage, "site.toml, line 7, key 'kernal'");
  CHECK_REFUSED(parse(changed("check =", "chekc =")), Usage, "key 'chekc'");
  CHECK_REFUSED(parse(unchecked("\"2.28\"", "\"2.3\"")), Usage, "site.toml, line 3, key 'glibc'");
  CHECK_REFUSED(parse(unchecked("\"2.28\"", "\"2.280\"")), Usage, "below 2.100");
  CHECK_REFUSED(parse(unchecked("\"2.28\"", "2.28")), Usage, "a string");
  CHECK_REFUSED(parse(unchecked("3.4.24", "3.4.2")), Usage, "a GLIBCXX version is too old");
  CHECK_REFUSED(parse(unchecked("3.4.24", "3.4.240")), Usage, "newer than any");
  CHECK_REFUSED(parse(unchecked("1.3.11", "GLIBC")), Usage, "this is not a CXXABI version");
  CHECK_REFUSED(parse(unchecked("4.19.90", "2.6.32")), Usage, "a kernel is too old");
  CHECK_REFUSED(parse(unchecked("4.19.90", "419.90")), Usage, "key 'kernel'");
  CHECK_REFUSED(parse(unchecked("580.65.06", "58.65")), Usage, "key 'driver'");
  CHECK_REFUSED(parse(unchecked("x86-64-v4", "x86-64-v5")), Usage, "x86-64-v1 to x86-64-v4");
  CHECK_REFUSED(parse(unchecked("[\"3.7\"]", "[\"2.7\"]")), Usage, "a Python version is too old");
  CHECK_REFUSED(parse(unchecked("[\"3.7\"]", "\"3.7\"")), Usage, "an array of strings");
  CHECK_REFUSED(parse(unchecked("x86_64", "../x")), Usage, "key 'arch'");
  CHECK_REFUSED(parse(unchecked("kylin V10", std::string(41, 'k'))), Usage, "key 'distribution'");
  CHECK_REFUSED(parse(unchecked("kylin V10", "\\u0007")), Usage, "printable");
  CHECK_REFUSED(parse(unchecked("\"amx_bf16\"", "\"\"")), Usage, "key 'flags'");
  CHECK_REFUSED(parse(unchecked("812", "-1")), Usage, "negative");
  std::string many = "python = [";
  for (int i = 0; i < 13; ++i) many += "\"3." + std::to_string(i) + "\",";
  CHECK_REFUSED(parse(unchecked("python = [\"3.7\"", many + "\"3.20\"")), Usage, "too long");
  const bundle::Error huge = test::refusal([&] { parse(unchecked("kylin V10", std::string(1'000, 'k'))); });
  CHECK(std::string(huge.what()).size() < 1'000);
  CHECK_REFUSED(parse(changed("arch = \"x86_64\"\n", "")), Usage, "key 'arch'");
  CHECK_REFUSED(parse(changed("format = 1", "format = 2")), CannotCheck, "of a format");
  CHECK_REFUSED(parse(changed("format = 1", "format = 1\n[")), Usage, "site.toml, line 2");
}

TEST_CASE("a job takes its target from a profile beside it, and its own keys count more") {
  const TempDir dir;
  write_file(dir / "site.toml", bundle::write_profile(kHost));
  CHECK(job_with(dir, "profile = \"site.toml\"").target == kHost);
  bundle::Target older = kHost;
  older.glibc = {2, 17};
  older.kernel = "3.10";
  CHECK(job_with(dir, "profile = \"site.toml\"\nglibc = \"2.17\"\nkernel = \"3.10\"").target == older);
  CHECK(job_with(dir, "profile = \"kylin-v10\"").target.distribution == "kylin V10");
  CHECK_REFUSED(job_with(dir, "profile = \"gone.toml\""), Missing, "debian-12");
  CHECK_REFUSED(job_with(dir, "profile = \"" + std::string(5'000, 'x') + "\""), Missing, "no such target profile");
  CHECK_REFUSED(job_with(dir, "profile = \"kylin-v10\"\ncolour = 1"), Usage, "key 'target.colour'");
  CHECK_REFUSED(job_with(dir, "glibc = \"2.28\""), Usage, "key 'target.arch'");
  CHECK_REFUSED(job_with(dir, "arch = \"x86_64\""), Usage, "key 'target.glibc'");
  write_file(dir / "arm.toml", "format = 1\narch = \"aarch64\"\nglibc = \"2.28\"\n");
  CHECK(job_with(dir, "profile = \"arm.toml\"").target.arch == "aarch64");
  write_file(dir / "odd.toml", "format = 1\narch = \"sparc64\"\nglibc = \"2.28\"\n");
  CHECK_REFUSED(job_with(dir, "profile = \"odd.toml\""), Usage, "sparc64");
  write_file(dir / "bare.toml", "format = 1\narch = \"x86_64\"\n");  // a machine where no libc.so.6 was found
  CHECK_REFUSED(job_with(dir, "profile = \"bare.toml\""), Usage, "key 'target.glibc'");
  CHECK(job_with(dir, "profile = \"bare.toml\"\nglibc = \"2.28\"").target.glibc == bundle::GlibcVersion{2, 28});
}

TEST_CASE("a lock keeps all of its target") {
  const TempDir dir;
  Lock lock{.name = "demo", .version = 1, .channel = "test", .created = "2026-01-01T00:00:00Z", .target = kHost};
  lock.glibc_floor = {2, 17};
  write_file(dir / "demo.lock.toml", write_lock(lock, dir.path()));
  CHECK(read_lock(dir / "demo.lock.toml") == lock);
}

TEST_CASE("shipped profiles promise no more than their systems have") {
  struct Promise {
    const char* name;
    bundle::GlibcVersion glibc;
    const char* glibcxx;
    const char* python;
  };
  const Promise promises[] = {{"anolis-23", {2, 36}, "3.4.30", "3.10"},
                              {"debian-12", {2, 36}, "3.4.30", "3.11"},
                              {"kylin-v10-aarch64", {2, 28}, "3.4.24", "3.7"},
                              {"kylin-v10", {2, 28}, "3.4.24", "3.7"},
                              {"openeuler-22.03-aarch64", {2, 34}, "3.4.28", "3.9"},
                              {"openeuler-22.03", {2, 34}, "3.4.28", "3.9"},
                              {"openeuler-24.03-aarch64", {2, 38}, "3.4.30", "3.11"},
                              {"openeuler-24.03", {2, 38}, "3.4.30", "3.11"},
                              {"rhel-8", {2, 28}, "3.4.25", "3.6"},
                              {"rhel-9", {2, 34}, "3.4.29", "3.9"},
                              {"ubuntu-22.04", {2, 35}, "3.4.30", "3.10"},
                              {"ubuntu-24.04", {2, 39}, "3.4.33", "3.12"},
                              {"uos-v20", {2, 28}, "3.4.24", "3.7"}};
  std::vector<std::string> names;
  for (const Promise& promise : promises) {
    names.emplace_back(promise.name);
    INFO(promise.name);
    const bundle::Target target = find_profile(promise.name, "/");
    CHECK(target.arch == (std::string_view(promise.name).ends_with("-aarch64") ? "aarch64" : "x86_64"));
    CHECK(target.glibc == promise.glibc);
    CHECK(target.glibcxx == promise.glibcxx);
    CHECK(target.python == std::vector<std::string>{promise.python});
    CHECK(!target.kernel.empty());
    CHECK(!target.distribution.empty());
    CHECK(!target.cxxabi.empty());
  }
  CHECK(shipped_profiles() == names);
}

TEST_CASE("a wheel that needs a newer glibc than the profile has is refused with its name and both versions") {
  const std::string hash = "hashes = { sha256 = \"" + std::string(64, 'a') + "\" } }";
  const auto wheel = [&](const std::string& tag) {
    return "{ url = \"https://example.invalid/demo-1.0-cp311-cp311-" + tag + ".whl\", " + hash;
  };
  const auto pylock = [](const std::string& wheels) {
    return "lock-version = \"1.0\"\n[[packages]]\nname = \"demo\"\nversion = \"1.0\"\nwheels = [" + wheels + "]\n";
  };
  const bundle::Target kylin = find_profile("kylin-v10", "/");
  const std::string newer = wheel("manylinux_2_34_x86_64");
  const bundle::Error error = test::refusal([&] { choose_packages(pylock(newer), "/", "3.11", kylin); });
  CHECK(error.code() == bundle::ErrorCode::Platform);
  CHECK(error.facts().got == "demo 1.0 (demo-1.0-cp311-cp311-manylinux_2_34_x86_64.whl needs glibc 2.34)");
  CHECK(error.facts().expected.find("glibc 2.28") != std::string::npos);
  CHECK(choose_packages(pylock(newer), "/", "3.11", find_profile("openeuler-22.03", "/")).wheels.size() == 1);
  const auto both = choose_packages(pylock(newer + ", " + wheel("manylinux_2_28_x86_64")), "/", "3.11", kylin).wheels;
  REQUIRE(both.size() == 1);
  CHECK(both[0].file_name == "demo-1.0-cp311-cp311-manylinux_2_28_x86_64.whl");
  // One for another system has no glibc to speak of.
  CHECK_REFUSED(choose_packages(pylock(wheel("win_amd64")), "/", "3.11", kylin), Platform, "got:      demo 1.0\n");
}

TEST_CASE("a job overrules checks of the target by their names, and the lock keeps them in order") {
  const TempDir dir;
  const std::string target = "arch = \"x86_64\"\nglibc = \"2.28\"\n";
  CHECK(job_with(dir, target).overruled.empty());
  CHECK(job_with(dir, target + "overrule = [\"gpu\", \"driver\", \"gpu\"]").overruled ==
        std::vector<std::string>{"driver", "gpu"});
  CHECK_REFUSED(job_with(dir, target + "overrule = [\"everything\"]"), Usage, "cpu, driver, gpu, kernel or space");
}

TEST_CASE("the profiles of a fleet give what all its machines have, and who lowers each floor") {
  bundle::Target newer = kHost;
  newer.glibc = {2, 36}, newer.kernel = "6.1.0-13", newer.driver = "590.10", newer.gpus = {"4 x NVIDIA H200"};
  newer.python = {"3.7", "3.11"}, newer.flags = {"amx_bf16"}, newer.free_gib = 90, newer.distribution = "debian 12";
  bundle::Target login = kHost;
  login.gpus.clear(), login.driver.clear(), login.cpu = "x86-64-v3", login.glibcxx = "3.4.19";
  const TempDir dir;
  const std::pair<const char*, const bundle::Target*> machines[] = {
      {"node1", &kHost}, {"node2", &newer}, {"login", &login}};
  for (const auto& [name, target] : machines)
    write_file(dir / ("fleet/" + std::string(name) + ".toml"), bundle::write_profile(*target));
  write_file(dir / "fleet/README", "no profile");
  const Job job = job_with(dir, "profile = \"fleet\"");
  bundle::Target expected = kHost;
  expected.glibcxx = "3.4.19", expected.cpu = "x86-64-v3", expected.flags = {"amx_bf16"}, expected.free_gib = 90;
  expected.distribution.clear();
  CHECK(job.target == expected);
  const std::vector<std::string> floors = {"glibc 2.28 is that of login; others have up to 2.36",
                                           "glibcxx 3.4.19 is that of login; others have up to 3.4.24",
                                           "kernel 4.19.90-52.22.v2207.ky10.x86_64 is that of login; others have up "
                                           "to 6.1.0-13",
                                           "cpu x86-64-v3 is that of login; others have up to x86-64-v4",
                                           "driver 580.65.06 is that of node1; others have up to 590.10",
                                           "free_gib 90 is that of node2; others have up to 812"};
  CHECK(job.fleet_floors == floors);
  CHECK(job_with(dir, "profile = \"fleet\"\nglibc = \"2.17\"").target.glibc == bundle::GlibcVersion{2, 17});

  SUBCASE("a node with GPUs that does not tell its driver is named") {
    newer.driver.clear();
    write_file(dir / "fleet/node2.toml", bundle::write_profile(newer));
    const std::vector<std::string> said = job_with(dir, "profile = \"fleet\"").fleet_floors;
    CHECK(std::find(said.begin(), said.end(), "driver is not known of node2") != said.end());
  }
  SUBCASE("two kinds of GPUs both count, and two architectures are refused") {
    newer.gpus = {"8 x Tesla T4"};
    write_file(dir / "fleet/node2.toml", bundle::write_profile(newer));
    CHECK(job_with(dir, "profile = \"fleet\"").target.gpus ==
          std::vector<std::string>{"8 x NVIDIA H200", "8 x Tesla T4"});
    newer.arch = "aarch64", newer.cpu.clear();
    write_file(dir / "fleet/node2.toml", bundle::write_profile(newer));
    CHECK_REFUSED(job_with(dir, "profile = \"fleet\""), Platform, "node2");
  }
  SUBCASE("a probe that was mistyped is refused with its file; a folder without any is refused") {
    write_file(dir / "fleet/node2.toml", changed("driver = \"580", "driver = \"581"));
    CHECK_REFUSED(job_with(dir, "profile = \"fleet\""), Usage, "node2.toml");
    CHECK_REFUSED(job_with(dir, "profile = \".\""), Usage, "job.toml");
    fs::create_directory(dir / "none");
    CHECK_REFUSED(job_with(dir, "profile = \"none\""), Missing, "sealift-install probe");
  }
}
