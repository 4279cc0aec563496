// SPDX-License-Identifier: Apache-2.0
// Each reason for which something is not served is a sentence in both languages, with the same names in it.
#include "offline_repo/catalogue/not_served.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace sealift::offline_repo;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether any word of a sentence, not of a name, was left in English.
bool speaks_english(const std::string& text) {
  const std::vector<std::string> words = {"served", " is ", " of ", " the ", "bytes", "carr", "newer", "left out"};
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return has(text, word); });
}

}  // namespace

TEST_CASE("a reason for which something is not served is Chinese on a Chinese page, with the same names") {
  struct Said {
    InBoth text;
    std::vector<std::string> names;
  };
  const InBoth clash = other_bytes(file_of_model("a.json", "org/tiny at 1234"), "env-2", "/srv/b", true);
  const std::vector<Said> all = {
      {patched_wheel("env-1", "wheels/a.whl"), {"env-1", "wheels/a.whl"}},
      {rotten_wheel("env-1", "wheels/a.whl"), {"env-1", "wheels/a.whl"}},
      {image_in_part("env-1", "org/app:1.0"), {"env-1", "org/app:1.0"}},
      {rpms_in_part("env-1", "files/rpm/a.rpm", true), {"env-1", "files/rpm/a.rpm"}},
      {rpms_in_part("env-1", "files/rpm/a.rpm", false), {"env-1", "files/rpm/a.rpm"}},
      {missing_debian_package("env-1", "a_1_all.deb"), {"env-1", "a_1_all.deb"}},
      {commit_in_part("org/tiny", "1234", 3, "a.json"), {"org/tiny", "1234", "3", "a.json"}},
      {clash, {"org/tiny", "1234", "a.json", "env-2", "/srv/b"}},
      {other_bytes(file_of_data("a.csv", "org/rows 1234"), "env-2", "/srv/b", false), {"a.csv", "org/rows 1234"}},
      {other_bytes(file_of_modelscope("a", "o/t master", "2026"), "env-2", "/b", false), {"o/t master", "2026"}},
      {other_bytes(the_bundle("env-1"), "env-1", "/srv/b", false), {"env-1", "/srv/b"}},
      {bundle_left_out("env-1", clash), {"env-1", "a.json", "env-2"}},
  };
  for (const Said& said : all) {
    CAPTURE(said.text.chinese);
    for (const std::string& name : said.names) {
      CHECK(has(said.text.english, name));
      CHECK(has(said.text.chinese, name));
    }
    CHECK(speaks_english(said.text.english));
    CHECK_FALSE(speaks_english(said.text.chinese));
  }
  CHECK(rpms_in_part("e", "p", true) != rpms_in_part("e", "p", false));
  CHECK(has(clash.chinese, "较新"));
}
