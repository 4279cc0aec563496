// SPDX-License-Identifier: Apache-2.0
// Which GPUs run what a fat binary holds: the rules by architecture, the reader on made files, and the tables of GPUs.
#include "sealift/bundle/native/gpu_code.hpp"

#include "sealift/bundle/native/gpu_models.hpp"
#include "tests/support/hostile/hostile_gpu_code.hpp"
#include "tests/support/hostile/read_hostile.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

GpuCode code_of(const std::string& section) {
  MemorySource source = source_of(elf_with_gpu_code(section), "lib.so");
  return read_gpu_code(source);
}

bool runs(std::string_view images, unsigned capability) {
  return runs_on(parse_gpu_images(images).value(), capability);
}

}  // namespace

TEST_CASE("machine code runs on newer GPUs of its major version, PTX on all newer ones") {
  CHECK(runs("sm_80", 80));
  CHECK(runs("sm_80", 89));
  CHECK_FALSE(runs("sm_86", 80));
  CHECK_FALSE(runs("sm_80", 90));
  CHECK_FALSE(runs("sm_75 sm_80 sm_90", 70));
  CHECK(runs("compute_75", 75));
  CHECK(runs("sm_75 compute_75", 120));
  CHECK_FALSE(runs("compute_75", 70));
}

TEST_CASE("an `a` runs on its own architecture only, an `f` within its family, machine code and PTX alike") {
  for (const std::string kind : {"sm_", "compute_"}) {
    CHECK(runs(kind + "90a", 90));
    CHECK_FALSE(runs(kind + "90a", 100));
    CHECK_FALSE(runs(kind + "100a", 103));
    CHECK(runs(kind + "100f", 103));
    CHECK_FALSE(runs(kind + "103f", 100));
    CHECK_FALSE(runs(kind + "100f", 110));
    CHECK_FALSE(runs(kind + "100f", 120));
  }
}

TEST_CASE("images are written in nvcc's words and read back, and no other text is one") {
  for (const std::string text : {"sm_75", "sm_90a", "sm_100f", "compute_120", "compute_90a", "other"})
    CHECK(GpuImage::parse(text).value().text() == text);
  for (const std::string text :
       {"", "sm_", "sm_x", "sm_90b", "sm_090", "sm_90aa", "compute_", "SM_90", "sm_99999", "90"})
    CHECK_MESSAGE(!GpuImage::parse(text), text);
  CHECK(text_of(parse_gpu_images("compute_120 sm_90a sm_75").value()) == "sm_75 sm_90a compute_120");
  CHECK_FALSE(parse_gpu_images("sm_75  sm_80"));
}

TEST_CASE("fat binaries are counted by the images that they hold, and by the GPUs that run them") {
  const GpuCode code = code_of(fat_binary({"sm_80", "sm_90"}) + fat_binary({"sm_90", "sm_80"}) +
                               fat_binary({"sm_90a", "sm_100f"}) + std::string(16, '\0') + fat_binary({"compute_75"}));
  CHECK(code.count() == 4);
  CHECK(code.binaries.at(parse_gpu_images("sm_80 sm_90").value()) == 2);
  CHECK(code.count_on(70) == 0);
  CHECK(code.count_on(75) == 1);
  CHECK(code.count_on(86) == 3);
  CHECK(code.count_on(90) == 4);
  CHECK(code.count_on(103) == 2);
  CHECK(text_of(code.images()) == "sm_80 sm_90 sm_90a sm_100f compute_75");
}

TEST_CASE("a fat binary without a kernel says nothing, however many architectures it names") {
  CHECK(code_of(fat_binary({"sm_75"}, 1904)).empty());
  CHECK(code_of(fat_binary({"sm_75", "compute_75"}, 1464) + fat_binary({"sm_90"})).count() == 1);
  CHECK(code_of(fat_binary({"compute_90"}, 400)).count() == 1);  // PTX alone may be short
}

TEST_CASE("an image of a kind that is not known is said to run everywhere, never to be missing") {
  std::string binary = fat_binary({"sm_90", "sm_100"});
  put(binary, 16, 64, 2);
  const GpuCode code = code_of(binary);
  CHECK(text_of(code.images()) == "sm_100 other");
  CHECK(code.count_on(70) == 1);
}

TEST_CASE("only the section of executable code counts, and a file without one has no code for GPUs") {
  const std::string section = fat_binary({"sm_90"});
  for (const std::string& bytes :
       {elf_with_gpu_code(section, "__nv_relfatbin"), elf_with_gpu_code(section, ".nv_fatbinx"),
        std::string("#!/bin/sh\n"), std::string(), std::string(200, '\x7f')}) {
    MemorySource source = source_of(bytes, "x");
    CHECK(read_gpu_code(source).empty());
  }
  MemorySource right = source_of(elf_with_gpu_code(section), "x");
  CHECK(read_gpu_code(right).count() == 1);
}

TEST_CASE("GPUs are known by the driver's name, by their number on the bus, or because the profile says it") {
  const std::pair<const char*, unsigned> known[] = {{"8 x NVIDIA H200", 90},
                                                    {"8 x Tesla V100-SXM2-32GB", 70},
                                                    {"1 x Tesla T4", 75},
                                                    {"4 x NVIDIA A100-SXM4-80GB", 80},
                                                    {"2 x NVIDIA A10", 86},
                                                    {"8 x NVIDIA H100 80GB HBM3", 90},
                                                    {"2 x NVIDIA L40S", 89},
                                                    {"1 x NVIDIA RTX A6000", 86},
                                                    {"1 x NVIDIA RTX 6000 Ada Generation", 89},
                                                    {"1 x NVIDIA RTX PRO 6000 Blackwell Server", 120},
                                                    {"8 x NVIDIA B200", 100},
                                                    {"8 x NVIDIA B300 SXM6 AC", 103},
                                                    {"1 x NVIDIA GB10", 121},
                                                    {"1 x Quadro RTX 8000", 75},
                                                    {"2 x NVIDIA GeForce RTX 3090", 86},
                                                    {"2 x NVIDIA GeForce GTX 1660", 75},
                                                    {"2 x NVIDIA GeForce GTX 1080 Ti", 61},
                                                    {"1 x NVIDIA GeForce RTX 5090", 120},
                                                    {"1 x NVIDIA TITAN V", 70},
                                                    {"1 x 10de:2335", 90},
                                                    {"1 x 10de:1db6", 70},
                                                    {"1 x 10de:2901", 100},
                                                    {"3 x NVIDIA Z900 sm_130", 130}};
  for (const auto& gpu : known) CHECK_MESSAGE(gpu_capability(gpu.first) == gpu.second, gpu.first);
  for (const char* gpu : {"", "1 x NVIDIA Z900", "1 x 10de:ffff", "1 x 10de:zzzz", "1 x NVIDIA GeForce RTX", "sm_90a?"})
    CHECK_MESSAGE(!gpu_capability(gpu), gpu);
}
