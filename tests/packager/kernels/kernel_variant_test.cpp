// SPDX-License-Identifier: Apache-2.0
// The variant of a kernel that is carried is the one that the real loader takes; variants.txt has its answers.
#include "packager/kernels/kernel_variant.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "packager/kernels/kernel_questions.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using bundle::Version;

namespace {

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

std::optional<Version> version_of(const std::string& text) {
  return text == "-" ? std::nullopt : Version::parse(text);
}

std::vector<LockedWheel> wheels(const std::vector<std::pair<std::string, std::string>>& packages) {
  std::vector<LockedWheel> wheels;
  for (const auto& [name, version] : packages)
    wheels.push_back({.name = name, .version = version, .file_name = {}, .url = {}, .sha256 = {}});
  return wheels;
}

}  // namespace

TEST_CASE("a kernel's variant is the one that three releases of the real loader choose, in 330 made repositories") {
  std::size_t chosen = 0;
  for (const std::string& line : split(test::read_file(SEALIFT_KERNEL_VARIANTS), '\n')) {
    const std::vector<std::string> row = split(line, '\t');
    REQUIRE(row.size() == 8);
    const KernelSystem system{.loader = Version::leading(row[0]),
                              .torch = version_of(row[1]),
                              .cxx11 = row[2] == "cxx11",
                              .tvm_ffi = version_of(row[4]),
                              .backend = row[3],
                              .arch = row[5]};
    INFO(line);
    CHECK(choose_variant(row[6] == "-" ? std::vector<std::string>() : split(row[6], ' '), system).value_or("-") ==
          row[7]);
    chosen += row[7] == "-" ? 0 : 1;
  }
  CHECK(chosen > 60);
}

TEST_CASE("names of variants that no loader knows fit nowhere") {
  const KernelSystem system{
      .loader = {.minor = 17}, .torch = Version{.major = 2, .minor = 11}, .tvm_ffi = {}, .arch = "x86_64"};
  for (const std::string name : {"", "-", "torch", "torch-", "torch211", "torch99999999999-cpu-x86_64-linux", "tvm",
                                 "torch-stable-abi", "torch-stable-abi9-cpu-x86_64-linux", "../torch-cpu"})
    CHECK_FALSE(choose_variant({name}, system));
}

TEST_CASE("what a loader will look at is read from the locked packages") {
  CHECK_FALSE(kernel_system(wheels({{"torch", "2.11.0"}}), "x86_64"));
  const auto text = [](const std::vector<std::pair<std::string, std::string>>& packages) {
    return kernel_system(wheels(packages), "x86_64").value().text();
  };
  CHECK(text({{"kernels", "0.15.2"}, {"torch", "2.11.0+cu128"}}) == "torch 2.11 (cu128), x86_64, kernels 0.15.2");
  CHECK(text({{"kernels", "0.15.2"}, {"torch", "2.11.0+cpu"}}) == "torch 2.11 (cpu), x86_64, kernels 0.15.2");
  CHECK(text({{"kernels", "0.15.2"}, {"torch", "2.10.0+rocm6.4"}}) == "torch 2.10 (rocm64), x86_64, kernels 0.15.2");
  CHECK(text({{"kernels", "0.15.2"}, {"torch", "2.15.0"}, {"nvidia-cuda-runtime", "13.0.96"}}) ==
        "torch 2.15 (cu130), x86_64, kernels 0.15.2");
  CHECK(text({{"kernels", "0.15.2"}, {"torch", "2.8.0"}, {"nvidia-cuda-runtime-cu12", "12.8.90"}}) ==
        "torch 2.8 (cu128), x86_64, kernels 0.15.2");
  CHECK(text({{"kernels", "0.15.2"}}) == "no torch (cpu), x86_64, kernels 0.15.2");
  const auto cxx11 = [](const std::string& torch) {
    return kernel_system(wheels({{"kernels", "0.15.2"}, {"torch", torch}}), "x86_64").value().cxx11;
  };
  CHECK(cxx11("2.7.0"));
  CHECK(cxx11("2.6.0+cu126"));
  CHECK_FALSE(cxx11("2.6.0+cu124"));
  CHECK_FALSE(cxx11("2.5.1"));
}

TEST_CASE("who will fetch kernels is said, once the loader is there, and without those that are carried") {
  CHECK(kernel_questions(wheels({{"transformers", "5.24.0"}}), {}).empty());
  // Of a release that transformers does not take, the loader is as if it were not there.
  CHECK(kernel_questions(wheels({{"transformers", "4.57.6"}, {"kernels", "0.15.2"}}), {}).empty());
  CHECK(kernel_questions(wheels({{"transformers", "5.24.0"}, {"kernels", "0.13.0"}}), {}).empty());
  CHECK(kernel_questions(wheels({{"transformers", "4.57.6"}, {"kernels", "0.9.0"}}), {}).size() == 1);
  const auto all = kernel_questions(wheels({{"transformers", "5.5.0"}, {"kernels", "0.15.2"}}), {});
  REQUIRE(all.size() == 1);
  CHECK(all[0].find("kernels-community/flash-attn2 for attention \"flash_attention_2\"") != std::string::npos);
  LockedKernel carried;
  carried.spec.repo = "kernels-community/flash-attn2";
  const auto rest = kernel_questions(wheels({{"transformers", "5.5.0"}, {"kernels", "0.15.2"}}), {carried});
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].find("flash-attn2") == std::string::npos);
  CHECK(rest[0].find("kernels-community/mamba-ssm") != std::string::npos);
}
