// SPDX-License-Identifier: Apache-2.0
// What the profile's machine lacks, one part at a time and all together: refused by name, warned of where the job
// overrules it, and silent about what the profile does not say.
#include "packager/native/profile_check.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include "packager/native/native_report.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;

namespace {

const std::string kTorch = "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl";
const std::string kBits = "bitsandbytes-0.49.0-py3-none-manylinux_2_24_x86_64.whl";

NativeFile library(const std::string& path, const std::string& owner, const std::string& images = {}) {
  NativeFile file{.path = path, .owner = owner, .from_wheel = true};
  file.elf.arch = "x86_64";
  file.elf.type = ET_DYN;
  file.elf.kernel_floor = "3.2.0";
  if (!images.empty()) file.gpu.binaries[bundle::parse_gpu_images(images).value()] = 7;
  return file;
}

// The bundle of the bank: CUDA 13, which has nothing older than Turing, in 7 GB.
struct Case {
  NativeFiles files;
  bundle::Target profile{.arch = "x86_64",
                         .glibc = {2, 28},
                         .kernel = "4.19.90-52.ky10",
                         .cpu = "x86-64-v4",
                         .gpus = {"8 x NVIDIA H200"},
                         .driver = "580.65.06",
                         .free_gib = 812};
  std::vector<std::string> overruled;
  std::uint64_t bytes = 7'000'000'000;

  Case() {
    files.files = {library("t/libtorch_cuda.so", kTorch, "sm_75 sm_80 sm_90 sm_100 sm_120"),
                   library("t/libtorch_cuda_linalg.so", kTorch, "sm_80 sm_90 sm_100 sm_120"),
                   library("n/libcudart.so.13", "nvidia_cuda_runtime-13.0.96-py3-none-any.whl"),
                   library("b/libbnb_cuda126.so", kBits, "sm_70 sm_75 sm_80 sm_90"),
                   library("b/libbnb_cuda130.so", kBits, "sm_75 sm_80 sm_90 sm_100 sm_120")};
    files.files[2].elf.soname = "libcudart.so.13";
  }
  MachineNeeds needs() const {
    MachineNeeds needs = machine_needs(files, "x86_64", 13);
    needs.bytes = bytes;
    return needs;
  }
  std::vector<NativeFinding> findings() const { return profile_findings(needs(), profile, overruled); }
  // Each finding as "refusal: what -> next", one a line.
  std::string said() const {
    std::string text;
    for (const NativeFinding& finding : findings())
      text += std::string(finding.severity == Severity::Refusal ? "refusal: " : "warning: ") + finding.what + " -> " +
              finding.next + "\n";
    return text;
  }
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a machine that has everything is told nothing, and so is a profile that says nothing") {
  Case fits;
  CHECK(fits.said().empty());
  fits.profile = {.arch = "x86_64", .glibc = {2, 28}};
  CHECK(fits.said().empty());
}

TEST_CASE("a driver, a processor, a kernel and a disk below the floor are refused with component, values and remedy") {
  Case bank;
  SUBCASE("driver") {
    bank.profile.driver = "535.183.06";
    CHECK(holds(bank.said(),
                "refusal: nvidia_cuda_runtime-13.0.96-py3-none-any.whl brings CUDA 13, which needs NVIDIA's "
                "driver 580 or newer; the target has 535.183.06 -> require packages that are built for an "
                "older CUDA"));
  }
  SUBCASE("processor") {
    bank.files.files[0].elf.cpu_floor = "x86-64-v3";
    CHECK(bank.said().empty());
    bank.profile.cpu = "x86-64-v2";
    CHECK(holds(bank.said(), "refusal: " + kTorch + " needs a processor of x86-64-v3; the target's is x86-64-v2"));
    bank.files.files[0].path = "lib/glibc-hwcaps/x86-64-v3/libtorch_cuda.so";  // taken where it fits, and else not
    CHECK(bank.said().empty());
  }
  SUBCASE("kernel") {
    bank.files.files[1].elf.kernel_floor = "5.4.0";
    CHECK(holds(bank.said(), "refusal: " + kTorch + " needs Linux 5.4.0 or newer; the target has 4.19.90-52.ky10"));
  }
  SUBCASE("space") {
    bank.profile.free_gib = 1;
    CHECK(holds(bank.said(), "refusal: the bundle takes 7.0 GB once it is installed; the target has 1 GiB free"));
    bank.bytes = (std::uint64_t{2} << 30) - 1;  // one GiB and a rest, which the profile does not tell
    CHECK(bank.said().empty());
  }
  for (const NativeFinding& finding : bank.findings()) CHECK(holds(finding.next, "[target] overrule = [\""));
}

TEST_CASE("a GPU without any code in a component is refused, one that only some of its files lack is warned of") {
  Case bank;
  bank.profile.gpus = {"8 x Tesla V100-SXM2-32GB"};
  CHECK(holds(bank.said(), "refusal: " + kTorch +
                               " has no code that 8 x Tesla V100-SXM2-32GB (sm_70) can run: its code "
                               "is for sm_75 sm_80 sm_90 sm_100 sm_120 -> require a build of it for sm_70"));
  CHECK(holds(bank.said(), "warning: of " + kBits + ", libbnb_cuda130.so has no code that"));
  bank.profile.gpus = {"8 x NVIDIA B200"};
  CHECK(bank.said() == "warning: of " + kBits +
                           ", libbnb_cuda126.so has no code that 8 x NVIDIA B200 (sm_100) can run "
                           "-> nothing, if the job uses only the others; else require another build\n");
  bank.profile.gpus = {"8 x NVIDIA H200", "1 x Tesla T4"};  // each of them counts
  CHECK(bank.said() == "warning: of " + kTorch +
                           ", libtorch_cuda_linalg.so has no code that 1 x Tesla T4 (sm_75) can "
                           "run -> nothing, if the job uses only the others; else require another build\n");
}

TEST_CASE("a GPU that is too old for every CUDA that is carried is refused before there is a file to look into") {
  Case bank;
  bank.profile.gpus = {"8 x Tesla V100-SXM2-32GB"};
  MachineNeeds early{.cuda = 13, .oldest_cuda = 13};
  const auto said = [&] {
    std::string text;
    for (const NativeFinding& finding : profile_findings(early, bank.profile, bank.overruled))
      text += (finding.severity == Severity::Refusal ? "refusal: " : "warning: ") + finding.what + "\n";
    return text;
  };
  CHECK(said() ==
        "refusal: the bundle brings CUDA 13, which has code for GPUs from sm_75 on; the target has 8 x Tesla "
        "V100-SXM2-32GB (sm_70)\n");
  early.oldest_cuda = 12;  // beside it: who knows which one is used
  CHECK(said().empty());
  early.oldest_cuda = 13;
  bank.overruled = {"gpu"};
  CHECK(said().starts_with("warning: the bundle brings CUDA 13"));
  bank.profile.gpus = {"1 x Tesla T4", "1 x a card that nobody knows"};
  CHECK(said().empty());
}

TEST_CASE("PTX serves newer GPUs, and an image of one architecture serves no other") {
  Case bank;
  bank.files.files = {library("f/flash.so", "flash-3.0-cp311-cp311-linux_x86_64.whl", "sm_90a")};
  CHECK(bank.said().empty());
  bank.profile.gpus = {"8 x NVIDIA B200"};
  CHECK(holds(bank.said(), "refusal: flash-3.0"));
  bank.files.files[0].gpu.binaries = {{bundle::parse_gpu_images("sm_90a compute_90").value(), 1}};
  CHECK(bank.said().empty());
}

TEST_CASE("a GPU that no table knows is warned of until the profile says its architecture") {
  Case bank;
  bank.profile.gpus = {"8 x NVIDIA Z900"};
  CHECK(holds(bank.said(), "warning: the GPU \"8 x NVIDIA Z900\" is in no table here"));
  bank.profile.gpus = {"8 x NVIDIA Z900 sm_130"};
  CHECK(holds(bank.said(), "refusal: " + kTorch));
  bank.files.files.resize(0);
  bank.profile.gpus = {"8 x NVIDIA Z900"};
  CHECK(bank.said().empty());  // nothing for a GPU, so nothing to check
}

TEST_CASE("code for GPUs that cannot be read is a warning that names the file") {
  Case bank;
  bank.files.files[3].gpu = {};
  bank.files.files[3].gpu_fault = "a fat binary does not begin as one";
  CHECK(holds(bank.said(), "warning: libbnb_cuda126.so of " + kBits + ": a fat binary does not begin as one"));
}

TEST_CASE("everything that the machine lacks is said at once, and what the job overrules is warned of instead") {
  Case bank;
  bank.profile.driver = "535.183.06";
  bank.profile.gpus = {"8 x Tesla V100-SXM2-32GB"};
  bank.profile.free_gib = 1;
  NativeReport report;
  report.findings = bank.findings();
  CHECK(report.count(Severity::Refusal) == 3);
  const bundle::Error error = test::refusal([&] { require_native(report, bank.profile, {}); });
  CHECK(error.code() == bundle::ErrorCode::Platform);
  for (const char* part : {"3 finding(s)", "535.183.06", "V100", "1 GiB free"}) CHECK(test::mentions(error, part));
  bank.overruled = {"driver", "gpu"};
  report.findings = bank.findings();
  CHECK(report.count(Severity::Refusal) == 1);
  CHECK(holds(bank.said(), "the job overrules `gpu`, and the manifest says so"));
  bank.overruled.emplace_back("space");
  report.findings = bank.findings();
  require_native(report, bank.profile, {});
}

TEST_CASE("a manifest says of each component what its code is for, under a plain name") {
  Case bank;
  bank.files.files.push_back(library("x.so", "odd-1.0+cu130-cp311-cp311-linux_x86_64.whl", "sm_90a compute_90"));
  bank.files.files.push_back(library("bin/x", "the program bin/trainer", "sm_90"));
  const std::map<std::string, std::string> expected = {{"bitsandbytes-0.49.0", "sm_70 sm_75 sm_80 sm_90 sm_100 sm_120"},
                                                       {"odd-1.0_cu130", "sm_90a compute_90"},
                                                       {"torch-2.11.0", "sm_75 sm_80 sm_90 sm_100 sm_120"},
                                                       {"trainer", "sm_90"}};
  CHECK(gpu_code_of(bank.needs()) == expected);
}
