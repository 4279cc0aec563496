// SPDX-License-Identifier: Apache-2.0
// A signed flat repository out of a bundle, as the real apt takes it over the loopback, and its routes as values.
#include <doctest/doctest.h>

#include "offline_repo/routes/routes.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/real_apt.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;

namespace {

constexpr char kDebName[] = "tool_1.0+b~1_all.deb", kDebBytes[] = "a package, which apt only downloads here";

TinyItem apt_item(const std::string& name, std::string bytes) {
  return {.path = "files/apt/" + name, .bytes = std::move(bytes), .into = "apt/" + name};
}

std::string index_of(const std::string& file, const std::string& bytes) {
  return "Package: tool\nVersion: 1:1.0+b~1\nArchitecture: all\nMaintainer: nobody\nDescription: a tool\nFilename: ./" +
         file + "\nSize: " + std::to_string(bytes.size()) +
         "\nSHA256: " + bundle::sha256(bundle::as_bytes(bytes)).hex() + "\n\n";
}

// As sealift-pack makes it; `key` signs.
std::vector<TinyItem> apt_items(const OpenPgpKey& key) {
  const TempDir dir;
  const std::string index = index_of(kDebName, kDebBytes);
  write_file(dir / "Release",
             "Origin: Sealift\nLabel: env\nSuite: test\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n"
             "Architectures: amd64\nAcquire-By-Hash: yes\nSHA256:\n " +
                 bundle::sha256(bundle::as_bytes(index)).hex() + " " + std::to_string(index.size()) + " Packages\n");
  REQUIRE(key.gpg("--output '" + (dir / "InRelease").string() + "' --clear-sign '" + (dir / "Release").string() + "'")
              .status == 0);
  REQUIRE(key.gpg("--armor --output '" + (dir / "key").string() + "' --export").status == 0);
  return {apt_item("Packages", index), apt_item("Release", read_file(dir / "Release")),
          apt_item("InRelease", read_file(dir / "InRelease")), apt_item(kAptKey, read_file(dir / "key")),
          apt_item(kDebName, kDebBytes)};
}

Contents contents_of(const MadeBundle& made, std::set<std::string> rotten = {}) {
  const auto in =
      std::make_shared<const bundle::VerifiedBundle>(bundle::verify(bundle::open(made.folder), made.trusted, kNow));
  auto contents = std::make_shared<BundleContents>(*read_contents(in));
  contents->rotten = std::move(rotten);
  return contents;
}

unsigned status_of(const Catalogue& catalogue, const std::string& target) {
  return respond(catalogue, {.method = "GET", .target = target}).status;
}

TinyBundle plain_repository(std::uint64_t version, const std::string& bytes) {
  return {.name = "env",
          .version = version,
          .created = "2026-01-0" + std::to_string(version) + "T00:00:00Z",
          .items = {apt_item("Packages", index_of("tool.deb", bytes)), apt_item("tool_1_all.deb", bytes)}};
}

}  // namespace

TEST_CASE("the real apt takes a signed index and a package from a bundle, and no index that another key signed") {
  if (!has_shell_program("apt-get") || !has_shell_program("gpg") || !has_shell_program("gpgv")) {
    sealift::test::left_out("needs apt-get, gpg and gpgv");
    return;
  }
  const OpenPgpKey key, other;
  REQUIRE(key.made());
  Live live({.name = "env", .version = 7, .items = apt_items(key)});
  const TempDir dir;
  const std::string base = "http://127.0.0.1:" + std::to_string(live.port);
  write_file(dir / "key.asc", fetch(live.port, "/apt/env/archive-key.asc").body);
  for (const std::string view : {"", "/c/test", "/b/env-7"}) {
    const RealApt apt("deb [signed-by=" + (dir / "key.asc").string() + "] " + base + view + "/apt/env ./");
    const ShellRan updated = apt.run("update");
    CHECK_MESSAGE(updated.status == 0, updated.output);
    CHECK_MESSAGE(updated.output.find("W:") == std::string::npos, updated.output);
    const ShellRan got = apt.run("download tool");
    CHECK_MESSAGE(got.status == 0, got.output);
    CHECK(read_file(apt.folder() / "tool_1%3a1.0+b~1_all.deb") == kDebBytes);
  }
  CHECK(live.logged().find("/by-hash/SHA256/") != std::string::npos);
  REQUIRE(other.gpg("--armor --output '" + (dir / "other.asc").string() + "' --export").status == 0);
  const RealApt wary("deb [signed-by=" + (dir / "other.asc").string() + "] " + base + "/apt/env ./");
  const ShellRan refused = wary.run("update");
  CHECK(refused.status != 0);
  CHECK_MESSAGE(refused.output.find("NO_PUBKEY") != std::string::npos, refused.output);
}

TEST_CASE("the page's lines for apt work as they are pasted, with the key that signed the index") {
  if (!has_shell_program("apt-get") || !has_shell_program("gpg") || !has_shell_program("curl")) {
    sealift::test::left_out("needs apt-get, gpg and curl");
    return;
  }
  const OpenPgpKey key;
  REQUIRE(key.made());
  Live live({.name = "env", .version = 7, .items = apt_items(key)});
  RawClient reader(live.port);
  reader.send("GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(live.port) + "\r\n\r\n");
  const std::string page = reader.receive().body, begin = "<h3>apt</h3>\n<pre tabindex=\"0\">";
  REQUIRE(page.find(begin) != std::string::npos);
  std::string lines = page.substr(page.find(begin) + begin.size());
  lines = lines.substr(0, lines.find("</pre>"));
  CHECK(lines.find("signed-by=") != std::string::npos);
  const RealApt apt("");
  const std::string root = apt.folder().string();
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = lines.find(from); at != lines.npos; at = lines.find(from, at + to.size()))
      lines.replace(at, from.size(), to);
  };
  replace("&gt;", ">");
  replace("/etc/apt/", root + "/etc/apt/");  // an apt of its own; /etc/apt/keyrings is apt's
  std::filesystem::create_directories(apt.folder() / "etc/apt/keyrings");
  const ShellRan pasted = run_shell("set -e\n" + lines, apt.folder() / "pasted");
  CHECK_MESSAGE(pasted.status == 0, pasted.output);
  const ShellRan updated = apt.run("update");
  CHECK_MESSAGE(updated.status == 0, updated.output);
  CHECK_MESSAGE(updated.output.find("W:") == std::string::npos, updated.output);
  CHECK(apt.run("download tool").status == 0);
}

TEST_CASE("of two versions the newer one's index is served, a package of a delta comes from the older bundle") {
  const TempDir dir;
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  TinyBundle newer = plain_repository(2, "same");
  newer.items.push_back(apt_item("more_2_all.deb", "more"));
  newer.items[1].absent = true;
  const Contents old = contents_of(make_bundle(dir / "1", plain_repository(1, "same"), key)),
                 fresh = contents_of(make_bundle(dir / "2", newer, key));
  const Catalogue both = catalogue_of({old, fresh});
  CHECK(status_of(both, "/apt/env/./more_2_all.deb") == 200);
  CHECK(status_of(both, "/apt/env/./tool_1_all.deb") == 200);
  CHECK(both.left_out.empty());
  const Catalogue alone = catalogue_of({fresh});
  CHECK(status_of(alone, "/apt/env/Packages") == 200);
  CHECK(status_of(alone, "/apt/env/tool_1_all.deb") == 404);
  REQUIRE(alone.left_out.size() == 1);
  CHECK(alone.left_out[0].english.starts_with("env-2: tool_1_all.deb of its Debian packages is not served"));
}

TEST_CASE("apt's addresses are names of the bundle's own files, and nothing rotten is served") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "1", plain_repository(1, "bytes"));
  const Catalogue catalogue = catalogue_of({contents_of(made)});
  const std::string index = index_of("tool.deb", "bytes");
  for (const std::string good :
       {"/apt/env/Packages", "/apt/env/./Packages", "/apt/env/././tool_1_all.deb", "/apt/env/tool_1%5fall.deb"})
    CHECK_MESSAGE(status_of(catalogue, good) == 200, good);
  CHECK(status_of(catalogue, "/apt/env/./by-hash/SHA256/" + bundle::sha256(bundle::as_bytes(index)).hex()) == 200);
  for (const std::string bad :
       {"/apt", "/apt/", "/apt/env", "/apt/env/", "/apt/env/.", "/apt/other/Packages", "/apt/env/../env/Packages",
        "/apt/env/InRelease", "/apt/env/Packages/", "/apt/env/by-hash/SHA256/00", "/apt/env/..%2fPackages"})
    CHECK_MESSAGE(status_of(catalogue, bad) == 404, bad);
  const Response page = respond(catalogue, {.method = "GET", .target = "/", .host = "repo"});
  CHECK(std::get<std::string>(page.body).find("deb [trusted=yes] http://repo/apt/env ./") != std::string::npos);
  CHECK(std::get<std::string>(page.body).find("<bdi>tool</bdi></td><td><bdi>1</bdi>") != std::string::npos);
  const Catalogue rotten = catalogue_of({contents_of(made, {"files/apt/tool_1_all.deb"})});
  CHECK(status_of(rotten, "/apt/env/tool_1_all.deb") == 404);
  CHECK(rotten.left_out.size() == 1);
  CHECK(status_of(catalogue_of({contents_of(made, {"files/apt/Packages"})}), "/apt/env/tool_1_all.deb") == 404);
}
