// SPDX-License-Identifier: Apache-2.0
// What probe finds on made machines: RHEL 8 and Kylin V10 with GPUs, Debian 12 without, and one with nothing at all.
#include "installer/host/probe.hpp"

#include <elf.h>

#include <sstream>

#include "installer/print/machine_report.hpp"
#include "sealift/bundle/manifest/target_profile.hpp"
#include "tests/installer/site.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/offering_elf.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

const std::string kV1 = "processor\t: 0\nmodel name\t: Some CPU\nvmx flags\t: avx512f\nflags\t\t: fpu sse sse2";
const std::string kV2 = kV1 + " cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
const std::string kV3 = kV2 + " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
const std::string kV4 = kV3 + " avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni amx_bf16";

struct Host {
  TempDir root;
  std::string folder;  // of libraries

  Host& libraries(const std::string& where, const std::string& glibc, const std::string& glibcxx,
                  const std::string& cxxabi) {
    folder = where;
    write_file(root / (folder + "/libc.so.6"),
               make_offering_elf({"libc.so.6", "GLIBC_2.2.5", "GLIBC_" + glibc, "GLIBC_2.9", "GLIBC_PRIVATE"}));
    write_file(root / (folder + "/libstdc++.so.6"),
               make_offering_elf({"libstdc++.so.6", "GLIBCXX_3.4.9", "GLIBCXX_" + glibcxx, "GLIBCXX_LDBL_3.4",
                                  "CXXABI_1.3.9", "CXXABI_" + cxxabi, "CXXABI_TM_1"}));
    return *this;
  }
  Host& file(const std::string& path, const std::string& text = {}) {
    write_file(root / path, text);
    return *this;
  }
  Host& gpu(const std::string& address, const std::string& vendor, const std::string& type, const std::string& model) {
    file("sys/bus/pci/devices/" + address + "/vendor", vendor + "\n");
    file("sys/bus/pci/devices/" + address + "/class", type + "\n");
    file("sys/bus/pci/devices/" + address + "/device", "0x2335\n");
    if (!model.empty())
      file("proc/driver/nvidia/gpus/" + address + "/information", "Model: \t\t " + model + "\nIRQ:   \t\t 0\n");
    return *this;
  }
  bundle::Target target() const { return probe(root.path()).target; }
};

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("probe sees RHEL 8: its hidden Python, OpenSSL 1.1, GPUs and their open driver") {
  Host host;
  host.libraries("usr/lib64", "2.28", "3.4.25", "1.3.11")
      .file("etc/os-release",
            "NAME=\"Red Hat Enterprise Linux\"\nVERSION_ID=\"8.10\"\nID=\"rhel\"\nID_LIKE=\"fedora\"\n")
      .file("proc/sys/kernel/osrelease", "4.18.0-553.el8_10.x86_64\n")
      .file("proc/cpuinfo", kV4 + "\n")
      .file("usr/libexec/platform-python3.6")
      .file("etc/pki/tls/certs/ca-bundle.crt")
      .file("usr/share/zoneinfo/UTC")
      .file("usr/bin/python3.11")
      .file("usr/bin/python3.11-config")
      .file("usr/lib64/libcrypto.so.1.1")
      .file("proc/sys/crypto/fips_enabled", "1\n")
      .file("proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\n"
            "GCC version:  gcc version 8.5.0 20210514 (Red Hat 8.5.0-22) (GCC)\n");
  for (const char* address : {"0000:18:00.0", "0000:2a:00.0"}) host.gpu(address, "0x10de", "0x030200", "NVIDIA H200");
  host.gpu("0000:05:00.0", "0x10de", "0x068000", "");  // an NVSwitch is no GPU
  host.gpu("0000:03:00.0", "0x1a03", "0x030000", "");  // nor is another maker's
  const bundle::Target target = host.target();
  CHECK(target.glibc == bundle::GlibcVersion{2, 28});
  write_file(host.root / (host.folder + "/libc.so.6"),
             make_offering_elf({"libc.so.6", "GLIBC_2.30"}) +
                 "GNU C Library (Debian GLIBC 2.31-13+deb11u11) stable release version 2.31.\n");
  CHECK(host.target().glibc == bundle::GlibcVersion{2, 31});
  CHECK(target.glibcxx == "3.4.25");
  CHECK(target.cxxabi == "1.3.11");
  CHECK(target.distribution == "rhel 8.10");
  CHECK(target.kernel == "4.18.0-553.el8_10.x86_64");
  CHECK(target.cpu == "x86-64-v4");
  CHECK(target.flags == std::vector<std::string>{"avx512_vnni", "amx_bf16"});
  CHECK(target.gpus == std::vector<std::string>{"2 x NVIDIA H200"});
  CHECK(target.driver == "580.65.06");
  CHECK(target.python == std::vector<std::string>{"3.6", "3.11"});
  CHECK(target.crypto == std::vector<std::string>{"libcrypto 1.1", "fips kernel"});
  const Machine machine = probe(host.root.path());
  CHECK(machine.authorities == "/etc/pki/tls/certs/ca-bundle.crt");
  CHECK(machine.time_zones);
}

TEST_CASE("probe sees Kylin V10, where a GPU without a driver is a number") {
  Host host;
  host.libraries("usr/lib64", "2.28", "3.4.24", "1.3.11")
      .file("etc/os-release", "NAME=\"Kylin Linux Advanced Server\"\nID=\"kylin\"\nVERSION_ID=\"V10\"\n")
      .file("proc/cpuinfo", kV3 + "\n")
      .gpu("0000:18:00.0", "0x10de", "0x030200", "");
  const bundle::Target target = host.target();
  CHECK(target.distribution == "kylin V10");
  CHECK(target.glibcxx == "3.4.24");
  CHECK(target.cpu == "x86-64-v3");
  CHECK(target.gpus == std::vector<std::string>{"1 x 10de:2335"});
  CHECK(target.driver.empty());
  CHECK(target.crypto.empty());
}

TEST_CASE("probe sees Debian 12: multiarch folders, os-release below /usr, OpenSSL 3 with a FIPS provider") {
  Host host;
  const std::string folder = "usr/lib/x86_64-linux-gnu";
  host.libraries(folder, "2.36", "3.4.30", "1.3.13")
      .file("usr/lib/os-release", "ID=debian\nVERSION_ID='12'\n")
      .file("proc/cpuinfo", kV2 + "\n")
      .file("sys/module/nvidia/version", "535.183.01\n")
      .file(folder + "/libcrypto.so.3")
      .file(folder + "/ossl-modules/fips.so");
  const bundle::Target target = host.target();
  CHECK(target.glibc == bundle::GlibcVersion{2, 36});
  CHECK(target.distribution == "debian 12");
  CHECK(target.cpu == "x86-64-v2");
  CHECK(target.driver == "535.183.01");
  CHECK(target.crypto == std::vector<std::string>{"libcrypto 3", "fips provider"});
  CHECK(Host().file("proc/cpuinfo", kV1 + "\n").target().cpu == "x86-64-v1");
}

TEST_CASE("probe of a machine without anything says so plainly and leaves out what it does not know") {
  const TempDir root;
  const Machine none = probe(root.path());
  CHECK(none.target.glibc == bundle::GlibcVersion{});
  CHECK(!none.target.arch.empty());
  CHECK(text_of(none).find("# glibc: no libc.so.6") != std::string::npos);
  CHECK(text_of(none).find("gpus") == std::string::npos);
  CHECK(json_of(none)["glibc"].is_null());
  CHECK(json_of(none)["gpus"].empty());
  CHECK(none.authorities.empty());
  CHECK_FALSE(none.time_zones);
  write_file(root / "lib64/libc.so.6", "not an ELF file");
  write_file(root / "usr/lib64/libc.so.6", make_offering_elf({"GLIBC_2.28"}, EM_RISCV));
  write_file(root / "etc/os-release/in-the-way", "");
  CHECK(probe(root.path()).target.glibc == bundle::GlibcVersion{});
}

TEST_CASE("probe follows libc.so.6 to its file, and finds this machine's own") {
  const Machine here = probe();
  if (here.libc.empty()) return left_out("needs a libc.so.6 of this machine");
  const TempDir root;
  fs::create_directories(root / "usr/lib64");
  fs::copy_file(here.libc, root / "usr/lib64/libc-2.so");
  fs::create_symlink("libc-2.so", root / "usr/lib64/libc.so.6");  // as older distributions have it
  CHECK(probe(root.path()).target.glibc == here.target.glibc);
  CHECK(text_of(here).find("glibc = \"" + here.target.glibc.text() + "\"") != std::string::npos);
}

TEST_CASE(
    "the fullest profile has at most 25 lines of at most 60 columns, and no text that TOML would have to escape") {
  Host host;
  host.libraries("usr/lib64", "2.28", "3.4.25", "1.3.11")
      .file("etc/os-release", "ID=\"" + std::string(80, 'i') + "\"\nVERSION_ID=\"a\\\"b\x01\"\n")
      .file("proc/sys/kernel/osrelease", std::string(200, '4') + "\n")
      .file("proc/cpuinfo", kV4 + " avx_vnni avx512_bf16 avx512_fp16 amx_int8\n")
      .file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n")
      .file("proc/sys/crypto/fips_enabled", "1\n")
      .file("usr/lib64/libcrypto.so.3")
      .file("usr/lib64/libcrypto.so.1.1")
      .file("usr/lib64/ossl-modules/fips.so");
  for (int minor = 5; minor < 15; ++minor) host.file("usr/bin/python3." + std::to_string(minor));
  for (int i = 0; i < 8; ++i)
    host.gpu("0000:0" + std::to_string(i) + ":00.0", "0x10de", "0x030200", std::to_string(i) + std::string(90, 'g'));
  Machine machine = probe(host.root.path());
  machine.target.free_gib = 1'000'000;
  const std::string text = text_of(machine);
  INFO(text);
  CHECK(longest_line(text) <= 60);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 25);
  CHECK(machine.target.distribution == std::string(bundle::kMaxProfileText, 'i'));
  CHECK(std::all_of(machine.target.gpus.begin(), machine.target.gpus.end(), bundle::is_profile_text));
  CHECK(bundle::is_profile_text(machine.target.kernel));
}
