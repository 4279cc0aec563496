// SPDX-License-Identifier: Apache-2.0
// site.toml is read strictly: what is misspelt, of another kind or no finite number is refused with its line, since it
// would silently expect nothing.
#include "verify/conduct/site_file.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace sealift::verify;

namespace {

nlohmann::json read_text(const std::string& text) {
  const auto file = std::filesystem::temp_directory_path() / ("site-" + std::to_string(getpid()) + ".toml");
  std::ofstream(file) << text;
  struct Remove {
    std::filesystem::path file;
    ~Remove() { std::filesystem::remove(file); }
  } const remove{file};
  return read_site_file(file.string());
}

std::string refusal(const std::string& text) {
  try {
    read_text(text);
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    return what.substr(what.find(".toml:") + 6);
  }
  return "";
}

}  // namespace

TEST_CASE("site.toml: everything that the documents name is read") {
  const auto site = read_text(R"(name = "bank"
[installation]
name = "llm"
version = 7
identity = "ab"
sbom = "x.cdx.json"
installer = "/opt/sealift-install"
[machine]
driver = "570.1"
gpus = 8
nvlinks = 18
shm_mib = 1024
free_gib = 1.5
ib_ports = 8
gpudirect = true
memory_bandwidth_gb = 300
clock_skew_seconds = 0.5
mixed = false
[arithmetic]
burn_seconds = 900
at_least = { "matmul fp32" = 40, "host to device" = 40 }
[communication]
burn_seconds = 600
[communication.at_least_gb]
all_reduce = 300
[training]
method = "fsdp"
settings = { wrapping_strategy = "by_block_group", blocks_per_unit = 2 }
precision = "fp32"
tolerance = 1e-5
shared_folder = "/shared"
[egress]
imports = ["torch"]
allowed = ["10.0.0.0/8"]
)");
  CHECK(site.at("machine").at("gpus") == 8);
  CHECK(site.at("communication").at("at_least_gb").at("all_reduce") == 300);
}

TEST_CASE("site.toml: a misspelt table or name is refused with its line and what is known") {
  CHECK(refusal("[machnie]\ngpus = 8\n") == "1: no check reads \"machnie\"");
  CHECK(refusal("[communication.at_lest_gb]\nall_reduce = 300\n")
            .starts_with("1: no check reads \"at_lest_gb\" of [communication]; known are at_least_gb, burn_seconds"));
  CHECK(refusal("[machine]\nmemory_bandwith_gb = 300\n").starts_with("2: no check reads \"memory_bandwith_gb\""));
  CHECK(refusal("[golden]\nname = \"x\"\n") == "1: no check reads \"golden\"");
}

TEST_CASE("site.toml: a value of another kind, infinity or no number is refused") {
  CHECK(refusal("communication = 5\n") == "1: communication is no table; write [communication]");
  CHECK(refusal("[machine]\ngpus = \"8\"\n") == "2: machine.gpus is not a whole number from 0");
  CHECK(refusal("[machine]\nmemory_bandwidth_gb = nan\n") == "2: machine.memory_bandwidth_gb is not a number from 0");
  CHECK(refusal("[machine]\nclock_skew_seconds = inf\n") == "2: machine.clock_skew_seconds is not a number from 0");
  CHECK(refusal("[arithmetic]\nat_least = { memory = nan }\n") ==
        "2: arithmetic.at_least is not a table of numbers from 0");
  CHECK(refusal("[arithmetic]\nburn_seconds = 0\n") == "2: arithmetic.burn_seconds is not a number of seconds from 1");
  CHECK(refusal("[egress]\nallowed = \"10.0.0.0/8\"\n") == "2: egress.allowed is not a list of texts");
  CHECK(refusal("[training]\ntolerance = inf\n") == "2: training.tolerance is not a number from 0");
  CHECK(refusal("name = 5\n") == "1: name is not a text");
}
