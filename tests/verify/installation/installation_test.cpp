// SPDX-License-Identifier: Apache-2.0
// A changed file, another version and another bundle are named; what cannot be looked at is NOT RUN with the reason.
// The installer is a script that prints what docs/json.md says of doctor.
#include "tests/verify/verdict/english.hpp"
#include "verify/installation/checks.hpp"
#include "verify/installation/versions.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

using namespace sealift::verify;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

struct Prefix {
  fs::path root = fs::temp_directory_path() / ("installation-test-" + std::to_string(getpid()));
  fs::path generation = root / "generations/0003";
  Prefix() {
    for (const auto* name : {"Foo.Bar-1.0.dist-info", "torch-2.6.0+cu124.dist-info", "torch"}) {
      fs::create_directories(generation / "lib/site-packages" / name);
    }
    fs::create_directories(root / "work");
    std::ofstream(generation / "generation.json")
        << Json{{"name", "llm"},
                {"version", 7},
                {"identity", "ab12"},
                {"signers", {"k1"}},
                {"site_packages", "lib/site-packages"},
                {"entries",
                 {{{"path", "wheels/foo_bar-1.0-py3-none-any.whl"}},
                  {{"path", "wheels/torch-2.6.0+cu124-1-cp312-cp312-linux_x86_64.whl"}},
                  {{"path", "models/x/config.json"}}}}};
  }
  ~Prefix() { fs::remove_all(root); }

  Site site(const Json& expected = Json::object()) const {
    Site site;
    site.prefix = generation;
    site.work = root / "work";
    site.expected = {{"installation", expected}};
    return site;
  }

  /// A program in the place of sealift-install; its arguments are kept beside it.
  void put_installer(const std::string& text, int code) const {
    const auto file = generation / "bin/sealift-install";
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\necho \"$@\" >" << (root / "arguments").string() << "\ncat <<'END'\n"
                        << text << "\nEND\nexit " << code << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }
};

CheckKind kind_named(const std::string& name) {
  for (auto& kind : installation_checks()) {
    if (kind.name == name) return kind;
  }
  throw std::invalid_argument(name);
}

Check judged(const std::string& name, const std::vector<Json>& hosts, const Site& site) {
  std::vector<Measured> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    all.push_back(
        {.rank = 0, .host = "n" + std::to_string(i), .device = "cpu", .not_run = {}, .error = {}, .values = hosts[i]});
  }
  Check check;
  kind_named(name).judge(all, site, check);
  return check;
}

Check run_one(const std::string& name, const Site& site) {
  return judged(name, {kind_named(name).measure(site)}, site);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a healthy prefix passes doctor, and a changed file fails it by name") {
  const Prefix prefix;
  prefix.put_installer(R"({"healthy":true,"files":12,"findings":[]})", 0);
  CHECK(run_one("installation.doctor", prefix.site()).reason.en == "12 files are what was signed");
  std::string arguments;
  std::getline(std::ifstream(prefix.root / "arguments"), arguments);
  CHECK(arguments == "doctor --prefix " + fs::canonical(prefix.root).string() + " --json");
  prefix.put_installer(
      R"({"healthy":false,"files":12,"findings":[{"kind":"changed","paths":["store/ab/x.py"],"expected":"sha256:1","got":"sha256:2"}]})",
      5);
  const auto changed = run_one("installation.doctor", prefix.site());
  CHECK(changed.outcome == Outcome::Fail);
  CHECK(english(changed.at_fault) == Names{"store/ab/x.py on n0"});
  CHECK(changed.reason.en == "store/ab/x.py on n0: changed: expected sha256:1, got sha256:2");
  prefix.put_installer(R"({"healthy":true,"files":12,"findings":[]})", 13);
  CHECK(run_one("installation.doctor", prefix.site()).outcome == Outcome::Fail);
}

TEST_CASE("doctor that cannot tell, is not there or prints nothing is NOT RUN, never a pass") {
  const Prefix prefix;
  prefix.put_installer(R"({"error":{"what":"the prefix is another user's","where":"/opt/env"}})", 2);
  CHECK_THROWS_WITH_AS(run_one("installation.doctor", prefix.site()),
                       "doctor cannot tell: the prefix is another user's /opt/env", NotRun);
  prefix.put_installer("", 0);
  CHECK_THROWS_AS(run_one("installation.doctor", prefix.site()), NotRun);
  CHECK_THROWS_AS(run_one("installation.doctor", prefix.site({{"installer", "/no/such/program"}})), NotRun);
  auto elsewhere = prefix.site();
  elsewhere.prefix = prefix.root / "work";
  for (const auto* name : {"installation.doctor", "installation.identity", "installation.versions"}) {
    CHECK_THROWS_AS(run_one(name, elsewhere), NotRun);
  }
}

TEST_CASE("installed versions are compared with the generation and the SBOM, as PyPI compares names") {
  const Prefix prefix;
  CHECK(run_one("installation.versions", prefix.site()).reason.en == "2 distributions have the versions of the bundle");
  const auto sbom = (prefix.root / "x.cdx.json").string();
  std::ofstream(sbom)
      << R"({"bomFormat":"CycloneDX","components":[{"purl":"pkg:pypi/foo-bar@1.0"},)"
      << R"({"purl":"pkg:pypi/torch@2.6.0%2Bcu124?x=y"},{"purl":"pkg:deb/debian/zstd@1"},{"name":"model"}]})";
  CHECK(run_one("installation.versions", prefix.site({{"sbom", sbom}})).outcome == Outcome::Pass);
  fs::rename(prefix.generation / "lib/site-packages/Foo.Bar-1.0.dist-info",
             prefix.generation / "lib/site-packages/Foo.Bar-1.1.dist-info");
  fs::create_directories(prefix.generation / "lib/site-packages/extra-3.dist-info");
  const auto other = run_one("installation.versions", prefix.site());
  CHECK(english(other.at_fault) == Names{"foo-bar on n0", "extra on n0"});
  CHECK(other.reason.en.starts_with("foo-bar on n0: 1.1 is installed, generation.json says 1.0"));
  CHECK_THROWS_AS(versions_of_sbom(Json::array()), std::invalid_argument);
}

TEST_CASE("a distribution that is there twice, or as an egg, is named; no distribution at all is no pass") {
  const Prefix prefix;
  const auto packages = prefix.generation / "lib/site-packages";
  fs::create_directories(packages / "torch-2.5.0.dist-info");
  std::ofstream(packages / "old_tool-0.9-py3.11.egg-info") << "Name: old-tool";
  const auto twice = run_one("installation.versions", prefix.site());
  CHECK(english(twice.at_fault) == Names{"torch on n0", "old-tool on n0"});
  CHECK(twice.reason.en.starts_with("torch on n0: 2.5.0 and 2.6.0+cu124 is installed"));
  const Json nothing{{"installed", Json::object()}, {"generation.json", Json::object()}};
  CHECK(judged("installation.versions", {nothing}, prefix.site()).outcome == Outcome::NotRun);
}

TEST_CASE("the identity of one host says that nothing was expected of it, where nothing was") {
  const Prefix prefix;
  const auto said = [&](const Json& expected) {
    return run_one("installation.identity", prefix.site(expected)).reason.en;
  };
  CHECK(said(Json::object()) ==
        "llm 7, ab12; there is nothing to compare with: no identity in site.toml ([installation]), no second host");
  CHECK(said({{"identity", "ab12"}}) == "llm 7, ab12");
}

TEST_CASE("a host with another bundle than the first, or than the site expects, is named") {
  const Prefix prefix;
  const auto good = kind_named("installation.identity").measure(prefix.site());
  auto other = good;
  other["identity"] = "cd34";
  CHECK(judged("installation.identity", {good, good}, prefix.site({{"identity", "ab12"}, {"version", 7}})).outcome ==
        Outcome::Pass);
  CHECK(english(judged("installation.identity", {good, other}, prefix.site()).at_fault) == Names{"n1"});
  CHECK(english(judged("installation.identity", {good}, prefix.site({{"identity", "ff"}})).at_fault) == Names{"n0"});
  CHECK(judged("installation.identity", {good}, prefix.site({{"version", 8}})).reason.en ==
        "n0: version of the bundle is 7, expected 8");
}
