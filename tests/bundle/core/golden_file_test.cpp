// SPDX-License-Identifier: Apache-2.0
// The golden run's file: read to the bit, and refused by the key that is wrong, for the packager and for a site alike.
#include "bundle/core/golden_file.hpp"

#include <doctest/doctest.h>

#include "bundle/core/json.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

const std::string kWeightsOfGolden(64, 'a');

Json golden_json() {
  return {{"format", "sealift.golden"},
          {"version", 1},
          {"name", "tiny"},
          {"verb", "sft"},
          {"rows", 4},
          {"steps", 2},
          {"threads", 2},
          {"device", "a cpu"},
          {"arch", "x86_64"},
          {"torch", "2.11.0"},
          {"weights", kWeightsOfGolden},
          {"settings", {{"model", "models/tiny"}, {"precision", "bf16"}}},
          {"inputs", {{"models/tiny/config.json", kWeightsOfGolden}}},
          {"losses", {"4", "0.66666666666666663"}},
          {"norms", {"1", "0.5"}},
          {"tolerances", {{"bf16@a cpu", "1e-3"}}}};
}

GoldenFile with(const std::string& pointer, const Json& value) {
  Json json = golden_json();
  json[Json::json_pointer(pointer)] = value;
  return parse_golden(json.dump(), "g.json");
}

}  // namespace

TEST_CASE("a golden run is read with all that it says, numbers to the bit") {
  const GoldenFile golden = parse_golden(golden_json().dump(), "g.json");
  CHECK(golden.name == "tiny");
  CHECK(golden.settings.at("precision") == "bf16");
  CHECK(golden.rows == 4);
  CHECK(golden.ranks == 1);
  CHECK(golden.inputs.at("models/tiny/config.json").hex() == kWeightsOfGolden);
  CHECK(golden.losses == std::vector<double>{4, 2.0 / 3});
  CHECK(golden.norms == std::vector<double>{1, 0.5});
  CHECK(golden.threads == 2);
  CHECK(golden.tolerances.at("bf16@a cpu") == 1e-3);
  Json of_two = golden_json();
  of_two.update({{"ranks", 2}, {"method", "fsdp"}});
  CHECK(parse_golden(of_two.dump(), "g.json").ranks == 2);
  CHECK(parse_golden(of_two.dump(), "g.json").method == "fsdp");
}

TEST_CASE("a golden run that no site would take is refused with what was expected") {
  CHECK_REFUSED(with("/version", 2), Usage, "no golden run of a known format");
  CHECK_REFUSED(with("/name", "../x"), Usage, "named by a-z");
  CHECK_REFUSED(with("/verb", "export"), Usage, "no such verb");
  CHECK_REFUSED(with("/settings/out", "/tmp"), Usage, "not for a golden run");
  CHECK_REFUSED(with("/settings/--device", "cuda"), Usage, "not for a golden run");
  CHECK_REFUSED(with("/settings/model", "../../etc"), Usage, "settings.model leaves the prefix");
  CHECK_REFUSED(with("/settings/seed", 1), Usage, "a value other than text");
  CHECK_REFUSED(with("/rows", 0), Usage, "rows is 0");
  CHECK_REFUSED(with("/threads", 0), Usage, "threads is 0");
  CHECK_REFUSED(with("/losses/1", "inf"), Usage, "not finite");
  CHECK_REFUSED(with("/losses/1", 3), Usage, "not finite");
  CHECK_REFUSED(with("/norms", Json::array()), Usage, "not one of norms for each step");
  CHECK_REFUSED(with("/inputs/a,b", kWeightsOfGolden), Usage, "an invalid path");
  CHECK_REFUSED(with("/inputs/..~1x", kWeightsOfGolden), Format, "not safe");
  CHECK_REFUSED(with("/inputs/x", "abc"), Usage, "something else than a SHA-256");
  CHECK_REFUSED(with("/tolerances/fp32", "2"), Usage, "a tolerance is no share");
  CHECK_REFUSED(with("/ranks", 2), Format, "method");
  CHECK_REFUSED(with("/more", true), Format, "more");
  std::string twice = golden_json().dump();
  twice.insert(1, "\"rows\": 4, ");
  CHECK_REFUSED(parse_golden(twice, "g.json"), Format, "a key stands twice");
}

TEST_CASE("a path below the prefix leaves it nowhere") {
  for (const char* good : {"a", "models/tiny/config.json", "a b/..c"}) CHECK(is_path_below(good));
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "a/../b", "a\\b", "a,b", "a\nb"})
    CHECK_FALSE(is_path_below(bad));
}
