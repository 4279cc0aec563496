// SPDX-License-Identifier: Apache-2.0
// The table of routes: how its patterns are read, and that docs/serving.md has each row, and nothing else.
#include "offline_repo/routes/route_table.hpp"

#include <doctest/doctest.h>

#include <set>

#include "offline_repo/routes/path_pattern.hpp"
#include "sealift/bundle/core/file.hpp"
#include "tests/offline_repo/sample_catalogue.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;

namespace {

// Repositories "ID" and "org/tree", and the sample's others.
const Catalogue& catalogue() {
  static const Catalogue made = [] {
    Catalogue all = sample_catalogue();
    add_repository(all, {.id = "ID"}, {"PATH"});
    add_repository(all, {.kind = bundle::RepositoryKind::Dataset, .id = "ID"}, {"PATH"});
    add_repository(all, {.id = "org/tree"}, {"PATH"});
    return all;
  }();
  return made;
}

// Answers of a path, with all that an Asked refers to.
class Asking {
 public:
  explicit Asking(const std::string& path)
      : request_{.method = "GET", .target = path}, target_(parse_target(path).value()) {}

  bool fits(std::string_view pattern) { return offline_repo::fits(pattern, asked_); }
  std::string name(std::string_view word) const { return asked_.name(word, "-"); }
  const ServedRepository* repository() const { return asked_.repository; }
  // The pattern of the row; "-" when there is none.
  std::string row() {
    const Route* route = find_site_route(request_);
    if (route == nullptr) route = find_route(asked_);
    return route == nullptr ? "-" : std::string(route->path);
  }

 private:
  const Request request_;
  const offline_repo::Target target_;
  const Pages pages_{catalogue()};
  Asked asked_{.catalogue = catalogue(), .pages = pages_, .request = request_, .target = target_};
};

// Paths between backticks, without their queries, and with a wheel of the sample in the place of words.
std::set<std::string> paths_in(const std::string& text) {
  std::set<std::string> paths;
  const IndexedWheel& wheel = catalogue().projects.at("torch").wheels.begin()->second;
  for (std::size_t begin = text.find("`/"); begin != text.npos; begin = text.find("`/", begin + 1)) {
    std::string path = text.substr(begin + 1, text.find('`', begin + 1) - begin - 1);
    path = path.substr(0, path.find('?'));
    if (const std::string files = "/files/SHA256/NAME.whl"; path.starts_with(files))
      path = "/files/" + wheel.sha256.hex() + "/" + wheel.file_name + path.substr(files.size());
    if (path.find_first_of(" \n") == path.npos) paths.insert(path);
  }
  return paths;
}

// The last row: names of repositories and images, and what nobody knows.
constexpr char kAnyName[] = "/PATH";

// Rows that answer what is not there, or lead to the page with its slash.
const std::set<std::string> kNotForPages = {"/v2/PATH", "/simple", "/simple/PATH", "/wheels", "/wheels/PATH"};

}  // namespace

TEST_CASE("a word in capitals is one segment, and a word in brackets may be missing with all behind it") {
  CHECK(Asking("/simple/").fits("/simple/"));
  CHECK_FALSE(Asking("/simple").fits("/simple/"));
  CHECK_FALSE(Asking("/simple/").fits("/simple"));
  CHECK(Asking("/").fits("/"));
  Asking project("/simple/a%2Fb/");
  CHECK(project.fits("/simple/NAME[/]"));
  CHECK(project.name("NAME") == "a/b");
  CHECK_FALSE(Asking("/simple/a/b").fits("/simple/NAME[/]"));
  CHECK_FALSE(Asking("/simple/a//").fits("/simple/NAME[/]"));
  Asking bare("/apt"), folder("/apt/env/"), file("/apt/env/a/b/");
  CHECK(bare.fits("/apt[/NAME][/PATH]"));
  CHECK(bare.name("NAME") == "-");
  CHECK(folder.fits("/apt[/NAME][/PATH]"));
  CHECK(folder.name("PATH") == "");
  CHECK(file.fits("/apt[/NAME][/PATH]"));
  CHECK(file.name("PATH") == "a/b/");
}

TEST_CASE("the name of an image has as many segments as are left before what the client wants of it") {
  Asking tags("/v2/a/tags/list/tags/list");
  CHECK(tags.row() == "/v2/IMAGE/tags/list");
  CHECK(tags.name("IMAGE") == "a/tags/list");
  Asking blob("/v2/a/b/blobs/sha256:0");
  CHECK(blob.row() == "/v2/IMAGE/blobs/DIGEST");
  CHECK(blob.name("DIGEST") == "sha256:0");
  CHECK(Asking("/v2/tags/list").row() == "/v2/PATH");
  CHECK(Asking("/v2").row() == "/v2[/]");
  CHECK(Asking("/v2/").row() == "/v2[/]");
}

TEST_CASE("the catalogue tells how many segments a repository's name has, and where it cannot any path fits") {
  Asking two("/api/models/org/tiny/tree/main/sub/"), one("/api/models/gpt2/tree"), none("/api/models/no/such/thing");
  CHECK(two.row() == "/api/KIND/ID/tree[/REV][/PATH]");
  CHECK(two.repository()->name.id == "org/tiny");
  CHECK(two.name("PATH") == "sub/");
  CHECK(one.row() == "/api/KIND/ID/tree[/REV][/PATH]");
  CHECK(one.repository()->name.id == "gpt2");
  CHECK(one.name("REV") == "-");
  CHECK(none.row() == "/api/KIND/ID[/]");
  CHECK(none.repository() == nullptr);
  CHECK(Asking("/api/models/org/tree").row() == "/api/KIND/ID[/]");
  CHECK(Asking("/api/models/org/tiny/bogus").row() == kAnyName);
  CHECK(Asking("/api/spaces/org/tiny").row() == kAnyName);
}

TEST_CASE(
    "in front of `resolve` a repository's name has the segments that stand there, of a data set behind its word") {
  Asking model("/org/tiny/resolve/main/a/b"), data("/datasets/org/tiny/resolve/v1/x"), one("/gpt2/resolve/main/x");
  CHECK(model.row() == "/ID/resolve/REV/PATH");
  CHECK(model.repository()->name.kind == bundle::RepositoryKind::Model);
  CHECK(model.name("PATH") == "a/b");
  CHECK(data.row() == "/datasets/ID/resolve/REV/PATH");
  CHECK(data.repository()->name.kind == bundle::RepositoryKind::Dataset);
  CHECK(one.row() == "/ID/resolve/REV/PATH");
  CHECK(one.repository()->name.id == "gpt2");
  CHECK(Asking("/a/b/c/resolve/main/x").row() == kAnyName);
  CHECK(Asking("/datasets/resolve/main/x").row() == kAnyName);
  CHECK(Asking("/gpt2/resolve/main").row() == kAnyName);
}

TEST_CASE("each path of the tables in docs/serving.md is a row, and each row is on that page") {
  const std::string page = bundle::read_text(SEALIFT_SERVING_PAGE, 1 << 20);
  std::string tables;
  for (std::size_t begin = page.find("\n| `/"); begin != page.npos; begin = page.find("\n| `/", begin + 1))
    tables += page.substr(begin, page.find(" | ", begin + 2) - begin);
  std::size_t rows = 0;
  for (const std::string& path : paths_in(tables)) {
    CAPTURE(path);
    const std::optional<ViewTarget> view = parse_view_target(path);
    const std::string row = Asking(view ? std::string(view->rest) : path).row();
    CHECK((row != kAnyName || path.starts_with("/ID") || path.starts_with("/datasets/ID") || path == "/IMAGE"));
    CHECK_FALSE(kNotForPages.contains(row));
    ++rows;
  }
  CHECK(rows > 30);
  std::set<std::string> told = kNotForPages;
  for (const std::string& path : paths_in(page)) told.insert(Asking(path).row());
  for (const Route& route : all_routes()) {
    CAPTURE(std::string(route.path));
    CHECK(told.contains(std::string(route.path)));
  }
}
