// SPDX-License-Identifier: Apache-2.0
// What a hub is asked, what is believed of its answers, and who gets to see a token.
#include "packager/models/hub.hpp"

#include "packager/files/fetch.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

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
