// SPDX-License-Identifier: Apache-2.0
// The bytes to sign are signed by openssl with a key that this program never sees, and a changed report is refused.
// Also: the documented schema is what is written.
#include "verify/report/signature.hpp"
#include "tests/verify/verdict/made_verdict.hpp"
#include "verify/conduct/child.hpp"
#include "verify/report/digests.hpp"
#include "verify/report/folder.hpp"
#include "verify/verdict/json.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace sealift::verify;
namespace fs = std::filesystem;

namespace {

void put(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A folder with a report in it and keys made by openssl beside it.
struct Desk {
  fs::path root = fs::temp_directory_path() / ("sign test-" + std::to_string(getpid()));
  fs::path report = root / "out";

  Desk() {
    fs::create_directories(report);
    write_report(made::verdict(), report);
    put(report / kDigestsFile, digest_list(report));
  }
  ~Desk() { fs::remove_all(root); }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  bool run(const std::string& command) const {
    return run_child({"sh", "-c", command}, {}, std::chrono::seconds(60), root).good();
  }
  void make_key(const std::string& algorithm) const {
    REQUIRE(run("openssl genpkey -quiet " + algorithm + " -out SITE.key 2>/dev/null || openssl genpkey " + algorithm +
                " -out SITE.key"));
    REQUIRE(run("openssl pkey -in SITE.key -pubout -out SITE.pub"));
  }
  /// Runs the commands as `sign` prints them.
  bool openssl(KeyKind kind, std::size_t which) const {
    return run(openssl_commands(kind, report, "SITE.pub").at(which));
  }
  bool holds() const {
    return signature_holds(read_site_key(root / "SITE.pub"), read_bounded(report / kDigestsFile),
                           read_bounded(report / kSignatureFile));
  }
  std::optional<std::string> difference() const {
    return difference_from_digests(read_bounded(report / kDigestsFile), report);
  }
};

using Json = nlohmann::json;

/// The faults of `json` under `schema`: the few words of JSON Schema that docs/verify_report.schema.json uses. Another
/// word is a fault too.
void faults(const Json& schema, const Json& json, const Json& root, const std::string& where,
            std::vector<std::string>& found) {
  if (schema.contains("$ref")) {
    const auto name = schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
    return faults(root["$defs"].at(name), json, root, where, found);
  }
  if (schema.contains("anyOf")) {
    for (const auto& one : schema["anyOf"]) {
      std::vector<std::string> of_one;
      faults(one, json, root, where, of_one);
      if (of_one.empty()) return;
    }
    return found.push_back(where + " is none of them");
  }
  for (const auto& [word, value] : schema.items()) {
    if (word == "type") {
      const auto type = json.is_number() && value == "number" ? "number"
                        : json.is_number_integer()            ? "integer"
                                                              : json.type_name();
      if (value != type) found.push_back(where + " is " + type);
    } else if (word == "enum") {
      if (std::find(value.begin(), value.end(), json) == value.end()) found.push_back(where + " is not in its list");
    } else if (word == "const") {
      if (json != value) found.push_back(where + " is not its constant");
    } else if (word == "items") {
      for (std::size_t i = 0; i < json.size(); ++i) faults(value, json[i], root, where + "[]", found);
    } else if (word == "required") {
      for (const auto& key : value) {
        if (!json.contains(key.get<std::string>())) found.push_back(where + " lacks " + key.get<std::string>());
      }
    } else if (word == "properties") {
      for (const auto& [key, below] : json.items()) {
        if (value.contains(key))
          faults(value[key], below, root, where + "." + key, found);
        else
          found.push_back(where + " has " + key);
      }
      std::size_t optional = 0;
      for (const auto& [key, below] : value.items()) optional += key.ends_with("_zh") || key == "not_run" ? 1 : 0;
      if (schema["required"].size() + optional != value.size()) found.push_back(where + ": not each key is required");
    } else if (word != "description" && word != "$defs" && word != "$schema" && word != "title" &&
               word != "additionalProperties" && word != "minItems" && word != "maxItems") {
      found.push_back("the schema's word " + word);
    }
  }
}

}  // namespace

TEST_CASE("openssl signs the list and verifies it, and so do we, for each kind of key") {
  const Desk desk;
  const std::vector<std::pair<KeyKind, std::string>> kinds{
      {KeyKind::Ed25519, "-algorithm ed25519"},
      {KeyKind::EcdsaP384, "-algorithm EC -pkeyopt ec_paramgen_curve:P-384"},
      {KeyKind::EcdsaP256, "-algorithm EC -pkeyopt ec_paramgen_curve:P-256"},
      {KeyKind::Sm2, "-algorithm SM2"}};
  for (const auto& [kind, algorithm] : kinds) {
    INFO(name_of(kind));
    desk.make_key(algorithm);
    CHECK(read_site_key(desk.root / "SITE.pub").kind == kind);
    for (std::size_t step = 0; step < 3; ++step) CHECK(desk.openssl(kind, step));
    CHECK(desk.holds());
    CHECK_FALSE(desk.difference());
    // Another key of the same kind did not sign this.
    desk.make_key(algorithm);
    CHECK_FALSE(desk.holds());
    CHECK_FALSE(desk.openssl(kind, 1));
  }
}

TEST_CASE("a changed file, a changed list and a changed signature are each refused, by openssl's tools as by us") {
  const Desk desk;
  desk.make_key("-algorithm ed25519");
  REQUIRE(desk.openssl(KeyKind::Ed25519, 0));
  for (const auto* name : kReportFiles) {
    const auto file = desk.report / name;
    const auto before = read_bounded(file);
    put(file, before + "\n");
    CHECK(desk.difference() == std::string(name) + " is not the file that was signed");
    CHECK_FALSE(desk.openssl(KeyKind::Ed25519, 2));
    put(file, before);
  }
  CHECK_FALSE(desk.difference());
  const auto list = read_bounded(desk.report / kDigestsFile);
  auto changed = list;
  changed.replace(changed.find("\"FAIL\""), 6, "\"PASS\"");
  put(desk.report / kDigestsFile, changed);
  CHECK(desk.difference() == "report.digests is not the list that this report gives");
  CHECK_FALSE(desk.holds());
  CHECK_FALSE(desk.openssl(KeyKind::Ed25519, 1));
  put(desk.report / kDigestsFile, list);
  CHECK(desk.holds());
  auto signature = read_bounded(desk.report / kSignatureFile);
  signature[10] = static_cast<char>(signature[10] ^ 1);
  put(desk.report / kSignatureFile, signature);
  CHECK_FALSE(desk.holds());
  put(desk.report / kSignatureFile, "");
  CHECK_FALSE(desk.holds());
}

TEST_CASE("a page that is not the report's is found before anything is signed") {
  const Desk desk;
  CHECK_FALSE(foreign_page(desk.report));
  auto page = read_bounded(desk.report / "report.zh.html");
  page.replace(page.find("未通过"), std::string("未通过").size(), "通过");
  put(desk.report / "report.zh.html", page);
  CHECK(foreign_page(desk.report) == "report.zh.html");
}

TEST_CASE("a site's name cannot add a line to what is signed") {
  const Desk desk;
  auto verdict = made::verdict();
  verdict.site = "bank\n" + std::string(64, '0') + "  report.html\n# \xE2\x80\xA8";
  write_report(verdict, desk.report);
  const auto list = digest_list(desk.report);
  CHECK(std::count(list.begin(), list.end(), '\n') == 6 + 5);
  CHECK(std::all_of(list.begin(), list.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
  CHECK(list.find("\n# verdict: \"FAIL\"\n") != list.npos);
}

TEST_CASE(
    "the list that is signed says what a pass leaves open, and one with the bare outcome, as before, still holds") {
  const Desk desk;
  auto verdict = made::verdict();
  for (auto& check : verdict.checks) {
    if (check.outcome == Outcome::Fail) check.outcome = Outcome::NotRun;
  }
  write_report(verdict, desk.report);
  auto list = digest_list(desk.report);
  const std::string said = "PASS, with 3 checks not run: ";
  CHECK(list.find("\n# verdict: \"" + said) != list.npos);
  CHECK_FALSE(difference_from_digests(list, desk.report));
  const auto at = list.find(said);
  auto bare = list;
  CHECK_FALSE(difference_from_digests(bare.replace(at, list.find('"', at) - at, "PASS"), desk.report));
  CHECK(difference_from_digests(list.replace(at, 8, "PASS, and"), desk.report));
}

TEST_CASE("a private key, an RSA key and no key are refused as a site's public key") {
  const Desk desk;
  const auto refused = [&](const std::string& file) {
    CHECK_THROWS_AS(read_site_key(desk.root / file), std::invalid_argument);
  };
  desk.make_key("-algorithm ed25519");
  refused("SITE.key");
  refused("none.pub");
  put(desk.root / "bad.pub", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
  refused("bad.pub");
  desk.make_key("-algorithm RSA -pkeyopt rsa_keygen_bits:2048");
  refused("SITE.pub");
}

TEST_CASE("docs/verify_report.schema.json describes each key of a report, and no other") {
  const auto schema = Json::parse(read_bounded(SEALIFT_SOURCE_FOLDER "/docs/verify_report.schema.json"));
  const auto faults_of = [&](const Json& json) {
    std::vector<std::string> found;
    faults(schema, json, schema, "report", found);
    return found;
  };
  auto json = Json::parse(to_json(made::verdict()).dump());
  CHECK(faults_of(json) == std::vector<std::string>{});
  auto bare = made::verdict();
  bare.bundle.reset();
  bare.checks[1].figures[0].value = std::nan("");
  CHECK(faults_of(Json::parse(to_json(bare).dump())) == std::vector<std::string>{});
  json["checks"][1]["figures"][0]["waived"] = true;
  json["checks"][1]["outcome"] = "OK";
  json["nodes"][0].erase("ranks");
  CHECK(faults_of(json) == std::vector<std::string>{"report.checks[].figures[] has waived",
                                                    "report.checks[].outcome is not in its list",
                                                    "report.nodes[] lacks ranks"});
}

TEST_CASE("a run that begins removes the report of an earlier one, whose verdict would else pass for its own") {
  const Desk desk;
  remove_report(desk.report);
  for (const auto* name : kReportFiles) CHECK(!fs::exists(desk.report / name));
  CHECK_THROWS_AS(desk.difference(), std::invalid_argument);
  remove_report(desk.report);  // there is nothing any more
  remove_report(desk.root / "none");
}
