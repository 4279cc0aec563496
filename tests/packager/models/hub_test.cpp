// SPDX-License-Identifier: Apache-2.0
// What a hub is asked, what is believed of its answers, and who gets to see a token.
#include "packager/models/hub.hpp"

#include "packager/host/url.hpp"
#include "packager/network/fetch.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_hub.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::TempDir;
using test::TinyHub;

namespace {

const FetchOptions kQuick{.jobs = 2, .attempts = 3, .first_pause = std::chrono::milliseconds(1)};

// HF_TOKEN for the length of a test.
struct TokenInEnvironment {
  explicit TokenInEnvironment(const char* token) { ::setenv("HF_TOKEN", token, 1); }
  ~TokenInEnvironment() { ::unsetenv("HF_TOKEN"); }
};

ModelSpec spec_of(const TinyHub& hub, Hub kind = Hub::HfHub) {
  return {.hub = kind, .endpoint = hub.endpoint(), .repo = "org/tiny", .revision = "main", .into = "models/tiny"};
}

std::vector<std::string> paths_of(const HubListing& listing) {
  std::vector<std::string> paths;
  for (const HubFile& file : listing.files) paths.push_back(file.path);
  return paths;
}

}  // namespace

TEST_CASE("a repository is listed at the commit of its revision, with the digests that the hub knows") {
  TinyHub hub;
  hub.publish("org/tiny", test::tiny_model());
  const HubListing listing = list_repository(spec_of(hub), kQuick);
  CHECK(listing.commit == hub.commit);
  CHECK(paths_of(listing) ==
        std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"});
  CHECK(listing.files[1].sha256 == bundle::sha256(bundle::as_bytes(test::tiny_model().at("model.safetensors"))));
  CHECK(listing.files[1].size == test::tiny_model().at("model.safetensors").size());
  CHECK_FALSE(listing.files[0].sha256);
}

TEST_CASE("every page of a long list is read, from the endpoint and from nowhere else") {
  TinyHub hub;
  hub.page_size = 2;
  hub.publish("org/tiny", test::sharded_model());
  CHECK(list_repository(spec_of(hub), kQuick).files.size() == test::sharded_model().size());
  CHECK(hub.server.requests().size() == 5);  // revision, and seven items in four pages
}

TEST_CASE("data has routes of its own") {
  TinyHub hub;
  hub.publish("org/tiny", {{"train.jsonl", "{}"}}, "datasets");
  ModelSpec spec = spec_of(hub);
  spec.data = true;
  CHECK(paths_of(list_repository(spec, kQuick)) == std::vector<std::string>{"train.jsonl"});
  CHECK(url_of(spec, "c0ffee", "a b/ü#1.txt") ==
        hub.endpoint() + "/datasets/org/tiny/resolve/c0ffee/a%20b/%C3%BC%231.txt");
}

TEST_CASE("a hub that fails for a moment is asked again") {
  TinyHub hub;
  hub.publish("org/tiny", test::tiny_model());
  hub.put("/api/models/org/tiny/revision/main",
          {.body = bundle::write_json({{"sha", hub.commit}}), .failures = 2, .failure_status = 503});
  CHECK(list_repository(spec_of(hub), kQuick).files.size() == 4);
}

TEST_CASE("a token goes to the hub and not to the host that the hub sends on to") {
  const TokenInEnvironment token("hf_secret");
  TinyHub hub;
  hub.token = "hf_secret";
  hub.publish("org/tiny", test::tiny_model());
  const HubListing listing = list_repository(spec_of(hub), kQuick);
  const TempDir dir;
  const Cache cache(dir / "cache");
  bundle::Progress progress(nullptr);
  const HubFile& large = listing.files[1];
  fetch({{.name = large.path,
          .url = url_of(spec_of(hub), listing.commit, large.path),
          .sha256 = *large.sha256,
          .size = large.size,
          .bearer = token_for(spec_of(hub))}},
        cache, progress, kQuick);
  CHECK(cache.contains(*large.sha256));
  for (const auto& request : hub.server.requests()) CHECK(request.authorization == "Bearer hf_secret");
  REQUIRE(hub.storage.requests().size() == 1);
  CHECK(hub.storage.requests()[0].authorization == "");
}

TEST_CASE("a token is not sent where others could read it") {
  const TokenInEnvironment token("hf_secret");
  const auto sent_to = [](const std::string& endpoint) {
    return token_for({.hub = Hub::HfHub, .endpoint = endpoint, .repo = "a/b"}) == "hf_secret";
  };
  CHECK(sent_to("https://hub.invalid"));
  CHECK(sent_to("http://127.0.0.1:8080"));
  CHECK(sent_to("http://localhost/hub"));
  CHECK_FALSE(sent_to("http://hub.invalid"));
  CHECK_FALSE(sent_to("http://localhost.hub.invalid"));
  CHECK_FALSE(sent_to("http://127.0.0.1.hub.invalid/x"));
  CHECK(token_for({.hub = Hub::ModelScope, .endpoint = "https://hub.invalid"}).empty());
}

TEST_CASE("a hub that lets nobody in is one message with what to do") {
  TinyHub hub;
  hub.token = "other";
  hub.publish("org/tiny", test::tiny_model());
  CHECK_REFUSED(list_repository(spec_of(hub), kQuick), Network, "401");
  CHECK_REFUSED(list_repository(spec_of(hub), kQuick), Network, "needs HF_TOKEN in the environment");
  const TokenInEnvironment token("wrong");
  CHECK_REFUSED(list_repository(spec_of(hub), kQuick), Network, "its terms were accepted");
}

TEST_CASE("a repository that is not there is asked for once") {
  const TinyHub hub;
  CHECK_REFUSED(list_repository(spec_of(hub), kQuick), Network, "404");
  CHECK(hub.server.requests().size() == 1);
}

TEST_CASE("answers that make no sense are refused, whatever is wrong with them") {
  TinyHub hub;
  hub.publish("org/tiny", test::tiny_model());
  const std::string tree = "/api/models/org/tiny/tree/" + hub.commit + "?recursive=true";
  const auto listed = [&](const std::string& body, const std::string& headers = "") {
    hub.put(tree, {.body = body, .headers = headers});
    return list_repository(spec_of(hub), kQuick);
  };
  const auto file = [](const std::string& more) {
    return R"([{"type": "file", "path": "a", "size": 1, "oid": "x")" + more + "}]";
  };
  CHECK(listed(file("")).files.size() == 1);
  CHECK_REFUSED(listed("<!DOCTYPE html>"), Format, "is not valid");
  CHECK_REFUSED(listed("{}"), Format, "not a list of files");
  CHECK_REFUSED(listed("[1]"), Format, "no 'type'");
  CHECK_REFUSED(listed(R"([{"type": "file", "path": "../a", "size": 1}])"), Format, "not safe");
  CHECK_REFUSED(listed(R"([{"type": "file", "path": "/a", "size": 1}])"), Format, "not safe");
  CHECK_REFUSED(listed(R"([{"type": "file", "path": "a", "size": -1}])"), Format, "not a size");
  CHECK_REFUSED(listed(R"([{"type": "file", "path": "a", "size": 9223372036854775813}])"), Format, "not a size");
  CHECK_REFUSED(listed(R"([{"type": "file", "path": "a", "size": 1}, {"type": "file", "path": "a", "size": 1}])"),
                Format, "is listed twice");
  CHECK_REFUSED(listed(file(R"(, "lfs": {"oid": "zz", "size": 1})")), Format, "not a SHA-256");
  CHECK_REFUSED(listed("[]", "Link: <http://elsewhere.invalid/x>; rel=\"next\"\r\n"), Format, "not a page of a hub");
  hub.put("/api/models/org/tiny/revision/main", {.body = R"({"sha": "../../etc"})"});
  CHECK_REFUSED(list_repository(spec_of(hub), kQuick), Format, "commit");
}

TEST_CASE("an answer is not read further than was agreed") {
  TinyHub hub;
  hub.put("/long", {.body = std::string(5000, 'x')});
  CHECK(get_documents({hub.server.url("/long")}, "", 5000, kQuick, "no", "next")[0].body.size() == 5000);
  CHECK_REFUSED(get_documents({hub.server.url("/long")}, "", 4999, kQuick, "no", "next"), Network,
                "more than 4999 bytes");
}

TEST_CASE("ModelScope tells digests but no commit, and is asked for the revision each time") {
  TinyHub hub;
  const std::string digest(64, 'e');
  hub.put("/api/v1/models/org/tiny/repo/files?Revision=main&Recursive=true",
          {.body = R"({"Code": 200, "Success": true, "Data": {"Files": [
              {"Type": "tree", "Path": "sub", "Size": 0},
              {"Type": "blob", "Path": "sub/a.bin", "Size": 7, "Sha256": ")" +
                   digest + R"("},
              {"Type": "blob", "Path": "b.json", "Size": 2, "Sha256": ""}]}})"});
  const ModelSpec spec = spec_of(hub, Hub::ModelScope);
  const HubListing listing = list_repository(spec, kQuick);
  CHECK(listing.commit.empty());
  CHECK(paths_of(listing) == std::vector<std::string>{"b.json", "sub/a.bin"});
  CHECK_FALSE(listing.files[0].sha256);
  CHECK(listing.files[1].sha256->hex() == digest);
  CHECK(url_of(spec, "", "sub/a.bin") ==
        hub.endpoint() + "/api/v1/models/org/tiny/repo?Revision=main&FilePath=sub%2Fa.bin");
  hub.put("/api/v1/models/org/tiny/repo/files?Revision=main&Recursive=true", {.body = R"({"Code": 10010})"});
  CHECK_REFUSED(list_repository(spec, kQuick), Format, "no 'Data'");
}

namespace {

// A ModelScope of one repository, which cuts every listing at 3,000 entries and says nothing about it.
struct CuttingHub {
  TinyHub hub;
  std::set<std::string> files;
  std::set<std::string> folders;

  void add(const std::string& folder, int count) {
    for (int i = 0; i < count; ++i) files.insert(folder + std::to_string(i) + ".txt");
    for (std::size_t end = 0; (end = folder.find('/', end)) != folder.npos; ++end)
      folders.insert(folder.substr(0, end));
  }
  std::string answer(const std::string& root, bool recursive) const {
    std::string items;
    int count = 0;
    const auto put = [&](const std::string& path, const char* type) {
      if (!path.starts_with(root) || path.size() == root.size()) return;
      if (!recursive && path.find('/', root.size()) != path.npos) return;
      if (++count <= 3000)
        items += fmt::format(R"({}{{"Type": "{}", "Path": "{}", "Size": 1, "Sha256": ""}})", items.empty() ? "" : ",",
                             type, path);
    };
    for (const std::string& folder : folders) put(folder, "tree");
    for (const std::string& file : files) put(file, "blob");
    return R"({"Code": 200, "Success": true, "Data": {"Files": [)" + items + "]}}";
  }
  HubListing listed() {
    const std::string api = "/api/v1/models/org/tiny/repo/files?Revision=main&Recursive=";
    for (const bool recursive : {true, false}) {
      hub.put(fmt::format("{}{}", api, recursive), {.body = answer("", recursive)});
      for (const std::string& folder : folders)
        hub.put(fmt::format("{}{}&Root={}", api, recursive, percent_encoded(folder)),
                {.body = answer(folder + "/", recursive)});
    }
    return list_repository(spec_of(hub, Hub::ModelScope), kQuick);
  }
};

}  // namespace

TEST_CASE("a list that ModelScope cuts is asked for folder by folder, until every file is there") {
  CuttingHub scope;
  scope.add("", 2);
  scope.add("a/", 2000);
  scope.add("b c/deep/", 1600);
  scope.add("b c/wide/", 1500);
  const HubListing listing = scope.listed();
  const std::vector<std::string> paths = paths_of(listing);
  CHECK(std::set<std::string>(paths.begin(), paths.end()) == scope.files);
  CHECK(paths.size() == scope.files.size());
  // All twice, a/ once, "b c/" twice, and its two folders once.
  CHECK(scope.hub.server.requests().size() == 7);
}

TEST_CASE("a list below ModelScope's cut is one request, and one at the cut is never believed") {
  CuttingHub whole;
  whole.add("a/", 2998);
  CHECK(whole.listed().files.size() == 2998);
  CHECK(whole.hub.server.requests().size() == 1);
  for (const char* folder : {"", "a/"}) {
    CuttingHub full;
    full.add("b/", 10);
    full.add(folder, 3000);
    CHECK_REFUSED(full.listed(), CannotCheck, "give the folder as source");
  }
}

TEST_CASE("a data set of ModelScope is listed page by page, until a page is not full") {
  TinyHub hub;
  ModelSpec spec = spec_of(hub, Hub::ModelScope);
  spec.data = true;
  const auto put = [&](int page, int count, const std::string& folder) {
    std::string items = fmt::format(R"({{"Type": "tree", "Path": "{}", "Size": 0, "Sha256": ""}})", folder);
    for (int i = 1; i < count; ++i)
      items += fmt::format(R"(, {{"Type": "blob", "Path": "{}/{}", "Size": {}, "Sha256": "{}"}})", folder, i, i,
                           i == 1 ? std::string(64, 'e') : "");
    hub.put(fmt::format("/api/v1/datasets/org/tiny/repo/tree?Revision=main&Recursive=True&PageNumber={}&PageSize=200",
                        page),
            {.body = count == 0 ? R"({"Code": 200, "Data": {"Files": null}})"
                                : R"({"Code": 200, "Data": {"Files": [)" + items + "]}}"});
  };
  put(1, 200, "a");
  put(2, 51, "b");
  const HubListing listing = list_repository(spec, kQuick);
  CHECK(listing.commit.empty());
  CHECK(listing.files.size() == 249);
  CHECK(listing.files[0].path == "a/1");
  CHECK(listing.files[0].sha256->hex() == std::string(64, 'e'));
  CHECK_FALSE(listing.files[1].sha256);
  CHECK(hub.server.requests().size() == 2);
  CHECK(url_of(spec, "", "a/1 2") ==
        hub.endpoint() + "/api/v1/datasets/org/tiny/repo?Revision=main&FilePath=a%2F1%202");
  put(2, 200, "b");
  put(3, 0, "");
  CHECK(list_repository(spec, kQuick).files.size() == 398);
  put(2, 200, "a");  // a hub that knows no pages
  CHECK_REFUSED(list_repository(spec, kQuick), Format, "it repeats the page before");
}

TEST_CASE("a hub that does not list the folder it was asked for, or puts a folder into itself, is refused") {
  CuttingHub scope;
  scope.add("a/", 2000);
  scope.add("b/", 2000);
  scope.listed();
  const std::string api = "/api/v1/models/org/tiny/repo/files?Revision=main&Recursive=";
  scope.hub.put(api + "true&Root=a", {.body = scope.answer("", true)});
  CHECK_REFUSED(list_repository(spec_of(scope.hub, Hub::ModelScope), kQuick), Format, "outside the folder");
  scope.hub.put(api + "true&Root=a", {.body = R"({"Data": {"Files": [{"Type": "tree", "Path": "a", "Size": 0}]}})"});
  CHECK_REFUSED(list_repository(spec_of(scope.hub, Hub::ModelScope), kQuick), Format, "outside the folder");
}
