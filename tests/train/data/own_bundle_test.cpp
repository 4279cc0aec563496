// SPDX-License-Identifier: Apache-2.0
// What a training result says of the bundle that it ran in: of an installed prefix, outside of one, and of records that
// somebody has damaged.
#include "trainer/own_bundle.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include <sys/stat.h>

#include "tests/support/temp_dir.hpp"

using sealift::test::TempDir;
using sealift::test::write_file;
using sealift::trainer::bundle_at;

namespace {

const std::string kIdentity(64, 'a');

std::string record(const std::string& name, const std::string& version, const std::string& identity,
                   const std::string& more = "") {
  return R"({"audit":{"name":"inner","version":[7]},"entries":[{"path":"wheels/x","identity":"inner"}],"generation":3,)"
         R"("identity":)" +
         identity + R"(,"name":)" + name + R"(,"signers":["x"],"version":)" + version + more + "}\n";
}

std::string said(const std::string& text) {
  const TempDir root;
  write_file(root / "generation.json", text);
  return bundle_at(root.path()).dump();
}

}  // namespace

TEST_CASE("an installed program says name, version, identity and generation of its bundle") {
  CHECK(said(record("\"env\"", "12", '"' + kIdentity + '"')) ==
        R"({"name":"env","version":12,"identity":")" + kIdentity + R"(","generation":3})");
}

TEST_CASE("a program outside of a bundle says none") {
  const TempDir root;
  CHECK(bundle_at(root.path()) == "none");
  CHECK(bundle_at(root / "nowhere") == "none");
}

TEST_CASE("a record that cannot be believed is told so, and none of its values is repeated") {
  const std::string good = '"' + kIdentity + '"';
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string(100'000, '['), std::string("\xff\xfe"),
        record("\"env\"", "12", good).substr(0, 150), record("\"env\"", "12", good) + "x",
        record("\"env\"", "-1", good), record("\"env\"", "1.5", good), record("\"env\"", "99999999999999999999", good),
        record("\"env\"", "18446744073709551615", good), record("\"env\"", "\"12\"", good),
        record("\"env\\u001b[2J\"", "12", good), record("\"\"", "12", good),
        record('"' + std::string(101, 'n') + '"', "12", good), record("\"env\"", "12", "\"AB\""),
        record("\"env\"", "12", good, R"(,"version":13)")}) {
    CAPTURE(text.substr(0, 300));
    const auto bundle = bundle_at([&] {
      static std::optional<TempDir> root;
      root.emplace();
      write_file(*root / "generation.json", text);
      return root->path();
    }());
    REQUIRE(bundle.is_string());
    CHECK(bundle.get<std::string>().starts_with("unreadable: "));
    CHECK(bundle.get<std::string>().find("env") == std::string::npos);
  }
}

TEST_CASE("a pipe or a folder in the place of the record does not hold up a training run") {
  const TempDir root;
  REQUIRE(::mkfifo((root / "generation.json").c_str(), 0600) == 0);
  CHECK(bundle_at(root.path()) == "unreadable: generation.json is no file");
  const TempDir other;
  std::filesystem::create_directory(other / "generation.json");
  CHECK(bundle_at(other.path()) == "unreadable: generation.json is no file");
}
