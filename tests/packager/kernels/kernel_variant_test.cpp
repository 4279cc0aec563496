// SPDX-License-Identifier: Apache-2.0
// The carried variant of a kernel is the real loader's choice; variants.txt has its answers.
#include "packager/kernels/kernel_variant.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "packager/kernels/asked_kernels.hpp"
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

TEST_CASE("who will fetch kernels is said with the revision, once the loader is there, and without what is carried") {
  CHECK(kernel_questions(wheels({{"transformers", "5.22.2"}}), {}).empty());
  // Of a release that transformers does not take, the loader is as if it were not there; transformers 4 looks at none.
  CHECK(kernel_questions(wheels({{"transformers", "5.24.0"}, {"kernels", "0.17.2"}}), {}).empty());
  CHECK(kernel_questions(wheels({{"transformers", "5.14.1"}, {"kernels", "0.16.0"}}), {}).empty());
  CHECK(kernel_questions(wheels({{"transformers", "4.57.6"}, {"kernels", "0.12.3"}}), {}).size() == 1);
  CHECK(kernel_questions(wheels({{"vllm", "0.33.0"}, {"kernels", "0.17.2"}}), {}).empty());  // it asks for none
  const auto wheel_list = wheels({{"transformers", "5.14.1"}, {"kernels", "0.15.2"}});
  const auto all = kernel_questions(wheel_list, {});
  REQUIRE(all.size() == 1);
  CHECK(all[0].find("kernels-community/flash-attn2 at v1 for attention \"flash_attention_2\"") != std::string::npos);
  CHECK(all[0].find("kernels-community/sonic-moe at ep-support for") != std::string::npos);
  CHECK(all[0].find("and with use_kernels=True ") != std::string::npos);
  LockedKernel carried;
  carried.spec.repo = "kernels-community/flash-attn2";
  carried.spec.revision = "v1";
  const auto rest = kernel_questions(wheel_list, {carried});
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].find("flash-attn2") == std::string::npos);
  CHECK(rest[0].find("kernels-community/mamba-ssm at v1") != std::string::npos);
}

TEST_CASE("a kernel that is carried at another revision than the one that is asked for is named with both") {
  LockedKernel carried;
  carried.spec.repo = "kernels-community/flash-attn2";
  carried.spec.revision = "main";
  const auto said = [&](const std::string& transformers, const std::string& loader) {
    const auto found = kernel_questions(wheels({{"transformers", transformers}, {"kernels", loader}}), {carried});
    return found.empty() ? std::string() : found[0];
  };
  CHECK(said("5.22.2", "0.17.2").find("flash-attn2 at v3 or v4, not main, for") != std::string::npos);
  carried.spec.revision = "v4";
  CHECK(said("5.22.2", "0.17.2").find("flash-attn2") == std::string::npos);
  CHECK(said("5.20.0", "0.17.2").find("flash-attn2 at v3, not v4, for") != std::string::npos);
  carried.named_by_variable = true;  // then the loader takes it for any
  CHECK(said("5.12.1", "0.13.0").find("flash-attn2") == std::string::npos);
}

TEST_CASE("who loads no carried kernel, since it does not take this release of the loader, is said") {
  LockedKernel carried;
  carried.spec.repo = "kernels-community/flash-attn2";
  const auto found = kernel_questions(wheels({{"transformers", "5.24.0"}, {"kernels", "0.17.2"}}), {carried});
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("takes kernels>=0.18.2,<0.19.0") != std::string::npos);
}

TEST_CASE("each line of the table of questions has its columns, and each repository a purpose") {
  for (const char* package : {"transformers", "diffusers", "vllm"})
    for (std::uint32_t major = 0; major < 6; ++major)
      for (std::uint32_t minor = 0; minor < 60; ++minor) {
        const Asking asking = asked_by(package, {.major = major, .minor = minor});
        CHECK(asking.window.first < asking.window.before);
        for (const AskedKernel& kernel : asking.kernels) {
          CAPTURE(kernel.repo);
          CHECK(kernel.repo.find('/') != std::string::npos);
          CHECK_FALSE(kernel.revisions.empty());
          CHECK((kernel.when == "itself" || kernel.when == "layers" || kernel.when == "backend"));
        }
        const std::string release = std::to_string(major) + "." + std::to_string(minor) + ".0";
        for (const std::string& line :
             kernel_questions(wheels({{package, release}, {"kernels", asking.window.first.text()}}), {})) {
          CAPTURE(release);
          CHECK(line.find("some models") == std::string::npos);
        }
      }
  CHECK(kernel_questions(wheels({{"transformers", "5.12.1"}, {"kernels", "0.12.3"}}), {}).size() == 1);
}
