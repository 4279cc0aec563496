// SPDX-License-Identifier: Apache-2.0
// The real dnf against the real program: packages of a bundle install over HTTP with their signatures checked; which
// bundle's packages are served, and which not.
#include "tests/support/rpm_repository.hpp"

#include <algorithm>
#include <map>

#include "offline_repo/protocols/front_page.hpp"
#include "offline_repo/routes/routes.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/support/tiny_rpm.hpp"

using namespace sealift::test;
using namespace sealift::offline_repo;
namespace fs = std::filesystem;

namespace {

TinyItem rpm_item(const std::string& path, const std::string& bytes) {
  return {.path = "files/rpm/" + path, .bytes = bytes, .into = "rpm/" + path};
}

// The signed packages of make_rpms.sh as `sealift-pack create` carries them.
std::vector<TinyItem> real_items() {
  const fs::path folder = rpm_repositories() / "signed";
  const std::string key = read_file(rpm_repositories() / "site.asc");
  std::vector<TinyItem> items = {rpm_item("keys.asc", key), rpm_item("repodata/repomd.xml.key", key)};
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder))
    if (file.is_regular_file())
      items.push_back(rpm_item(file.path().lexically_relative(folder), read_file(file.path())));
  return items;
}

std::vector<TinyItem> few_items(const std::string& repomd) {
  return {rpm_item("repodata/repomd.xml", repomd), rpm_item("tool-2.0-1.el9.noarch.rpm", tiny_rpm())};
}

struct RpmShelf {
  TempDir dir;
  std::vector<Contents> contents;

  void add(const TinyBundle& tiny, const std::string& folder) {
    const MadeBundle made = make_bundle(dir / folder, tiny);
    contents.push_back(read_contents(std::make_shared<const sealift::bundle::VerifiedBundle>(
        sealift::bundle::verify(sealift::bundle::open(made.folder), made.trusted, kNow))));
  }
};

}  // namespace

TEST_CASE("dnf installs a bundle's rpm packages from sealift-repo, merged and by channel, and checks who signed them") {
  // Packages and index: gpgcheck and repo_gpgcheck.
  TempDir dir;
  const MadeBundle made = make_bundle(dir / "env-1", {.name = "env", .items = real_items()});
  ServerProcess server(serve({made.folder, "--fingerprint", made.fingerprint()}), dir / "log");
  const std::string host = "http://127.0.0.1:" + std::to_string(port_of(server.line()));
  int number = 0;
  for (const char* view : {"", "/c/test", "/b/env-1"}) {
    const std::string url = host + view + "/rpm/env", root = (dir / ("root" + std::to_string(number++))).string();
    const int status = dnf_install(root, url, url + "/keys.asc," + url + "/repodata/repomd.xml.key", "alpha", true);
    INFO(read_file(root + ".log"));
    CHECK(status == 0);
    CHECK(read_file(root + "/usr/share/beta/file") == "beta 2.0~rc1\n");
  }
  const std::string root = (dir / "other").string();
  const std::string other = "file://" + (rpm_repositories() / "other.asc").string();
  CHECK(dnf_install(root, host + "/rpm/env", other, "alpha") != 0);
  CHECK(read_file(root + ".log").find("GPG") != std::string::npos);
}

TEST_CASE("dnf with repo_gpgcheck takes no index from sealift-repo that another key signed, or none") {
  TempDir dir;
  std::vector<TinyItem> items = real_items();
  const auto end = std::remove_if(items.begin(), items.end(),
                                  [](const TinyItem& item) { return item.path.ends_with("repomd.xml.asc"); });
  REQUIRE(end != items.end());
  items.erase(end, items.end());
  const MadeBundle without = make_bundle(dir / "plain-1", {.name = "plain", .items = items});
  items.push_back(rpm_item("repodata/repomd.xml.asc", read_file(rpm_repositories() / "foreign.sig")));
  const MadeBundle foreign = make_bundle(dir / "foreign-1", {.name = "foreign", .items = items});
  for (const auto& [name, made] : std::map<std::string, MadeBundle>{{"plain", without}, {"foreign", foreign}}) {
    ServerProcess server(serve({made.folder, "--fingerprint", made.fingerprint()}), dir / "log");
    const std::string url = "http://127.0.0.1:" + std::to_string(port_of(server.line())) + "/rpm/" + name,
                      keys = url + "/keys.asc", root = (dir / name).string();
    CHECK(dnf_install(root + "-root", url, keys, "alpha", true) != 0);
    CHECK_FALSE(fs::exists(root + "-root/usr/share/alpha"));
    CHECK(dnf_install(root + "-lax", url, keys, "alpha") == 0);
  }
}

TEST_CASE("a path of the rpm packages is one that a bundle signed, with ranges and an ETag, or is not there") {
  RpmShelf shelf;
  shelf.add({.name = "env", .items = few_items("one")}, "env");
  const Catalogue catalogue = catalogue_of(shelf.contents);
  const auto get = [&](const std::string& target, const std::string& range = "") {
    return respond(catalogue, {.method = "GET", .target = target, .range = range});
  };
  const Response whole = get("/rpm/env/tool-2.0-1.el9.noarch.rpm");
  CHECK(whole.status == 200);
  CHECK(whole.body_size() == tiny_rpm().size());
  CHECK(whole.header("Cache-Control") == "no-cache");
  CHECK(whole.route == RouteKind::Rpm);
  CHECK(get("/rpm/env/repodata/repomd.xml").body_size() == 3);
  CHECK(get("/rpm/env/repodata/repomd.xml", "bytes=1-1").status == 206);
  CHECK(get("/rpm/env/tool%2D2.0-1.el9.noarch.rpm").status == 200);
  for (const char* target :
       {"/rpm", "/rpm/", "/rpm/env", "/rpm/env/", "/rpm/other/repodata/repomd.xml",
        "/rpm/env/../env/repodata/repomd.xml", "/rpm/env/repodata", "/rpm/env/repodata/repomd.xml/",
        "/rpm/env/..%2Fkeys.asc", "/rpm/env//repodata/repomd.xml"}) {
    INFO(target);
    CHECK(get(target).status == 404);
  }
  CHECK(respond(catalogue, {.method = "PUT", .target = "/rpm/env/keys.asc"}).status == 405);
}

TEST_CASE("of two bundles of one name the newer's rpm packages are served, and never a part of a repository") {
  RpmShelf shelf;
  shelf.add({.name = "env", .version = 2, .created = "2026-02-01T00:00:00Z", .items = few_items("newer")}, "env-2");
  shelf.add(
      {.name = "env", .channel = "other", .version = 1, .created = "2026-01-01T00:00:00Z", .items = few_items("old")},
      "env-1");
  shelf.add({.name = "plain", .items = {rpm_item("tool.rpm", tiny_rpm())}}, "plain-1");
  std::vector<TinyItem> items = few_items("delta");
  items[1].absent = true;
  shelf.add({.name = "delta", .items = items}, "delta-1");
  const Catalogue catalogue = catalogue_of(shelf.contents);
  REQUIRE(catalogue.rpms.size() == 1);
  CHECK(catalogue.rpms.at("env").files.at("repodata/repomd.xml").size == 5);
  REQUIRE(catalogue.left_out.size() == 1);
  CHECK(catalogue.left_out[0].english.find("tool-2.0-1.el9.noarch.rpm is not carried") != std::string::npos);
}

TEST_CASE("the front page's line for dnf asks for each check that the bundle has a key for") {
  const auto line_of = [](std::vector<TinyItem> items) {
    RpmShelf shelf;
    shelf.add({.name = "env", .items = std::move(items)}, "env");
    const FrontPage page(catalogue_of(shelf.contents), PageLanguage::English);
    const std::string text = page.text(page_address("repo:8080", "", "/v2"), "");
    const std::size_t begin = text.find("dnf --disablerepo");
    return begin == text.npos ? std::string() : text.substr(begin, text.find("</pre>", begin) - begin);
  };
  const std::string start = "dnf --disablerepo='*' --repofrompath=sealift,http://repo:8080/rpm/env";
  const std::string gpgkey = " --setopt=sealift.gpgkey=http://repo:8080/rpm/env/";
  std::vector<TinyItem> items = few_items("index");
  CHECK(line_of(items) == start + " --setopt=sealift.gpgcheck=0 install PACKAGE");
  items.push_back(rpm_item("repodata/repomd.xml.key", "key"));
  CHECK(line_of(items) == start + " --setopt=sealift.gpgcheck=0 --setopt=sealift.repo_gpgcheck=1" + gpgkey +
                              "repodata/repomd.xml.key install PACKAGE");
  items.push_back(rpm_item("keys.asc", "keys"));
  CHECK(line_of(items) == start + " --setopt=sealift.gpgcheck=1 --setopt=sealift.repo_gpgcheck=1" + gpgkey +
                              "keys.asc,http://repo:8080/rpm/env/repodata/repomd.xml.key install PACKAGE");
}
