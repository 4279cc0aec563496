// SPDX-License-Identifier: Apache-2.0
// Which build of torch fits a driver: as uv answers, played here, and as the real uv finds it in a made index.
#include "packager/resolve/torch_backend.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <memory>
#include <set>
#include <sstream>

#include "packager/resolve/resolve.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

Job torch_job() {
  return {.file = "job.toml",
          .name = "demo",
          .version = 1,
          .target = {.arch = "x86_64", .glibc = {2, 36}},
          .python = "3.11"};
}

}  // namespace

TEST_CASE("the newest build of torch that the driver runs and that has what is required is chosen") {
  Job job = torch_job();
  job.target.driver = "535.183.06";
  std::vector<std::string> asked;
  const auto choose = [&](const std::string& has) {
    asked.clear();
    return choose_torch_backend(job, [&](const Job& candidate) {
      asked.push_back(candidate.inputs.torch_backend);
      return asked.back() == has ? "" : "no version of torch==2.11";
    });
  };
  CHECK(choose("cu126").empty());  // the job asks for none
  CHECK(asked.empty());
  job.inputs.torch_backend = "cpu";
  CHECK(choose("cu126") == "cpu");
  job.inputs.torch_backend = "auto";
  CHECK(choose("cu128") == "cu128");
  CHECK(asked == std::vector<std::string>{"cu129", "cu128"});  // a driver of CUDA 12 runs nothing of CUDA 13
  job.target.driver = "580.65.06";
  CHECK(choose("cu130") == "cu130");
  job.target.driver = "470.57";
  CHECK(choose("cu118") == "cu118");
  CHECK(asked == std::vector<std::string>{"cu118"});
  SUBCASE("where nothing fits, every candidate is listed with the driver that it needs") {
    const bundle::Error error = test::refusal([&] { choose("cu130"); });
    CHECK(error.code() == bundle::ErrorCode::Platform);
    for (const char* part :
         {"cu130 needs driver 580 or newer", "cu128 needs driver 525.60.13 or newer",
          "cu118 needs driver 450.80.02 or newer: it would run, but uv says: no version", "NVIDIA driver 470.57"})
      CHECK_MESSAGE(test::mentions(error, part), part);
  }
  SUBCASE("a profile without a driver is asked for one") {
    job.target.driver.clear();
    CHECK_REFUSED(choose("cu130"), Platform, "sealift-install probe");
    CHECK(asked.empty());
  }
}

TEST_CASE("uv finds torch in the index of a backend, here a made one, and not in that of another") {
  const std::filesystem::path uv = SEALIFT_UV_BESIDE, python = "/usr/bin/python3.11";
  if (!std::filesystem::exists(uv) || !std::filesystem::exists(python)) {
    sealift::test::left_out("needs uv (cmake/prerequisites.sh) and ", python.string());
    return;
  }
  const TempDir dir;
  const auto publish = [&](const std::string& backend, const std::string& version) {
    const test::TinyWheel wheel{
        .name = "torch", .version = version + "+" + backend, .files = {{"torch/__init__.py", ""}}};
    const std::string folder = "whl/" + backend + "/torch/";
    write_file(dir / (folder + wheel.file_name()), test::make_wheel(wheel));
    write_file(dir / (folder + "index.html"), "<a href=\"" + wheel.file_name() + "\">" + wheel.file_name() + "</a>\n");
  };
  publish("cu130", "2.11.0");
  publish("cu129", "2.10.0");
  publish("cu128", "2.11.0");
  std::filesystem::create_directories(dir / "none");
  Job job = torch_job();
  job.inputs.requirements = {"torch==2.11.0"};
  job.inputs.default_index = "file://" + (dir / "none").string();
  job.inputs.torch_index = "file://" + (dir / "whl").string();
  job.inputs.torch_backend = "auto";
  const UvPython given = UvPython(python, "3.11.2", dir / "uv-python");
  const auto choose = [&](const std::string& driver) {
    job.target.driver = driver;
    return choose_torch_backend(job, [&](const Job& candidate) -> std::string {
      SourceFacts nothing;
      try {
        return resolve(candidate, uv, given, dir / "out", nothing).pylock.find("torch") == std::string::npos
                   ? "no torch"
                   : "";
      } catch (const bundle::Error& error) {
        return error.facts().got;
      }
    });
  };
  CHECK(choose("580.65.06") == "cu130");
  CHECK(choose("535.183.06") == "cu128");
  CHECK_REFUSED(choose("470.57"), Platform, "cu118 needs driver 450.80.02");
}

TEST_CASE("the backends of torch that auto chooses from are those that uv has an index for") {
  const std::filesystem::path uv = SEALIFT_UV_BESIDE;
  if (!std::filesystem::exists(uv)) {
    sealift::test::left_out("needs uv (cmake/prerequisites.sh)");
    return;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> help(
      ::popen(("'" + uv.string() + "' pip compile --help 2>&1").c_str(), "r"), ::pclose);
  std::string text;
  for (char buffer[4096]; const std::size_t count = std::fread(buffer, 1, sizeof buffer, help.get());)
    text.append(buffer, count);
  const std::size_t option = text.find("--torch-backend <"), values = text.find("possible values:", option);
  REQUIRE(values != std::string::npos);
  // PyTorch has built nothing for these; what is older than 11.8 is of torch 1.
  const std::set<std::string> none = {"cu125", "cu123", "cu122", "cu120"};
  std::vector<std::string> of_uv, ours;
  std::istringstream words(text.substr(values, text.find(']', values) - values));
  for (std::string word; words >> word;) {
    while (word.ends_with(',')) word.pop_back();
    if (word.starts_with("cu") && word.size() == 5 && word >= "cu118" && !none.contains(word)) of_uv.push_back(word);
  }
  for (const TorchBackend& backend : torch_backends()) ours.push_back(backend.name);
  CHECK(ours == of_uv);
}
