// SPDX-License-Identifier: Apache-2.0
// A hub's routes as values, with what each client needs of them; and bodies of requests over a socket.
#include "bundle/core/json.hpp"
#include "offline_repo/protocols/hub_pages.hpp"
#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/routes/routes.hpp"
#include "tests/offline_repo/hub_bundle.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/sample_catalogue.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;
using bundle::Json;

namespace {

constexpr char kForm[] = "application/x-www-form-urlencoded";

Response get(const Catalogue& catalogue, const std::string& target, const std::string& range = {}) {
  return respond(catalogue, {.method = "GET", .target = target, .range = range});
}
Response post(const Catalogue& catalogue, const std::string& target, const std::string& type, const std::string& body) {
  return respond(catalogue, {.method = "POST", .target = target, .content_type = type, .body = body});
}
Json json_of(const Response& response) {
  CHECK(response.status == 200);
  CHECK(response.header("Content-Type") == "application/json");
  return Json::parse(std::get<std::string>(response.body));
}
std::vector<std::string> paths_in(const Json& items) {
  std::vector<std::string> paths;
  for (const Json& item : items)
    paths.push_back(item["type"].get<std::string>().substr(0, 1) + " " + item["path"].get<std::string>());
  return paths;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("a repository tells its commit and files, whichever revision it is asked for by") {
  const Catalogue catalogue = sample_catalogue();
  const std::string commit_end = "/revision/" + kSampleCommit;
  for (const std::string& end : Paths{"", "/", "/revision/main", "/revision/v1", commit_end}) {
    CAPTURE(end);
    const Json info = json_of(get(catalogue, "/api/models/org/tiny" + end));
    CHECK(info["id"] == "org/tiny");
    CHECK(info["sha"] == kSampleCommit);
    CHECK(info["private"] == false);
    CHECK(info["lastModified"] == "2026-01-01T00:00:00.000Z");
    REQUIRE(info["siblings"].size() == 3);
    CHECK(info["siblings"][1] == Json{{"rfilename", "sub/a b.json"}});
  }
  const Json sized = json_of(get(catalogue, "/api/models/org/tiny?blobs=true"))["siblings"][0];
  CHECK(sized["size"] == 1000);
  CHECK(sized["lfs"]["sha256"] == bundle::sha256(bundle::as_bytes("config.json")).hex());
  CHECK(json_of(get(catalogue, "/api/models/gpt2/revision/main"))["id"] == "gpt2");
  CHECK(json_of(get(catalogue, "/api/datasets/org/tiny"))["siblings"][0]["rfilename"] == "rows.jsonl");
}

TEST_CASE("repositories are listed and searched, and a client is told whose token it has") {
  const Catalogue catalogue = sample_catalogue();
  const auto names = [&](const std::string& target) {
    std::vector<std::string> all;
    for (const Json& one : json_of(get(catalogue, target))) {
      CHECK_FALSE(one.contains("siblings"));
      all.push_back(one["id"]);
    }
    return all;
  };
  CHECK(names("/api/models") == Paths{"gpt2", "org/tiny"});
  CHECK(names("/api/models/?search=TIN&full=true") == Paths{"org/tiny"});
  CHECK(names("/api/models?author=org") == Paths{"org/tiny"});
  CHECK(names("/api/models?author=or").empty());
  CHECK(names("/api/models?limit=1") == Paths{"gpt2"});
  for (const char* limit : {"0x", "-1", "99999999999999999999"})
    CHECK(names(std::string("/api/models?limit=") + limit).size() == 2);
  CHECK(names("/api/datasets") == Paths{"org/tiny"});
  const Json user = json_of(respond(catalogue, {.method = "GET", .target = "/api/whoami-v2", .user = "team"}));
  CHECK(user["name"] == "team");
  CHECK(user["auth"]["accessToken"]["role"] == "read");
}

TEST_CASE("a tree lists one folder, or all below it") {
  const Catalogue catalogue = sample_catalogue();
  const std::string tree = "/api/models/org/tiny/tree/main";
  CHECK(paths_in(json_of(get(catalogue, tree))) == Paths{"f config.json", "d sub"});
  CHECK(paths_in(json_of(get(catalogue, tree + "?recursive=False&expand=False"))).size() == 2);
  for (const std::string query : {"?recursive=true", "?expand=false&recursive=True", "?recursive=1"})
    CHECK(paths_in(json_of(get(catalogue, tree + query))) ==
          Paths{"f config.json", "d sub", "f sub/a b.json", "d sub/deep", "f sub/deep/weights.safetensors"});
  CHECK(paths_in(json_of(get(catalogue, tree + "/sub"))) == Paths{"f sub/a b.json", "d sub/deep"});
  CHECK(paths_in(json_of(get(catalogue, tree + "/sub/deep/"))) == Paths{"f sub/deep/weights.safetensors"});
  for (const std::string none : {"/su", "/config.json", "/absent", "/sub/a%20b.json"})
    CHECK(get(catalogue, tree + none).header("X-Error-Code") == "EntryNotFound");
  const Json file = json_of(get(catalogue, tree))[0];
  CHECK(file["size"] == 1000);
  CHECK(file["lfs"]["oid"] == bundle::sha256(bundle::as_bytes("config.json")).hex());
  CHECK(file["lfs"]["pointerSize"] == 129);
}

TEST_CASE("a file comes with its commit and digest, in ranges, and for ever only under the commit") {
  const Catalogue catalogue = sample_catalogue();
  const std::string path = "/sub/deep/weights.safetensors";
  const std::string etag = "\"" + bundle::sha256(bundle::as_bytes(path.substr(1))).hex() + "\"";
  const std::string there = "/org/tiny/resolve/" + kSampleCommit;
  for (const std::string& revision : Paths{"main", "v1", kSampleCommit}) {
    const Response whole = get(catalogue, "/org/tiny/resolve/" + revision + path);
    const bool branch = revision != kSampleCommit;
    CHECK(whole.status == (branch ? 307 : 200));
    CHECK(whole.header("Location") == (branch ? there + path : ""));
    CHECK(whole.header("ETag") == (branch ? "" : etag));
    CHECK(whole.header("X-Linked-ETag") == etag);
    CHECK(whole.header("X-Linked-Size") == "1000");
    CHECK(whole.header("X-Repo-Commit") == kSampleCommit);
    CHECK((whole.header("Cache-Control") == "no-cache") == branch);
    for (const auto& [name, value] : whole.headers) CHECK_FALSE(name.starts_with("X-Xet"));
  }
  CHECK(get(catalogue, there + path).body_size() == 1000);
  const Response part = get(catalogue, there + path, "bytes=10-19");
  CHECK(part.status == 206);
  CHECK(part.body_size() == 10);
  CHECK(part.header("X-Repo-Commit") == kSampleCommit);
  CHECK(get(catalogue, there + path, "bytes=1000-").status == 416);
  CHECK(get(catalogue, "/org/tiny/resolve/main/sub/a%20b.json").header("Location") == there + "/sub/a%20b.json");
  CHECK(get(catalogue, there + "/sub/a%20b.json").status == 200);
  CHECK(get(catalogue, "/datasets" + there + "/rows.jsonl").status == 200);
  CHECK(get(catalogue, "/datasets/org/tiny/resolve/main/rows.jsonl").header("Location") ==
        "/datasets" + there + "/rows.jsonl");
  CHECK(get(catalogue, "/gpt2/resolve/main/config.json").header("Location") ==
        "/gpt2/resolve/" + kSampleCommit + "/config.json");
  const auto behind = [&](const std::string& prefix) {
    return std::string(respond(catalogue, {.method = "GET",
                                           .target = "/gpt2/resolve/main/config.json",
                                           .forwarded_prefix = prefix,
                                           .root = "/c/prod"})
                           .header("Location"));
  };
  const std::string plain = "/c/prod/gpt2/resolve/" + kSampleCommit + "/config.json";
  CHECK(behind("/repo/") == "/repo" + plain);
  CHECK(behind("/a/b-c.d_e~") == "/a/b-c.d_e~" + plain);
  for (const std::string none :
       {"", "/", "//other.site", "other.site", "/a b", "/a\\", "/%0d%0a", "/a?b", "/a\r\nX: y"})
    CHECK(behind(none) == plain);
}

TEST_CASE("missing files have the code by which clients tell a missing file from a missing server") {
  const Catalogue catalogue = sample_catalogue();
  const std::pair<std::string, std::string> rows[] = {
      {"/org/tiny/resolve/main/absent.json", "EntryNotFound"},
      {"/org/tiny/resolve/main/sub", "EntryNotFound"},
      {"/org/tiny/resolve/main/../config.json", "EntryNotFound"},
      {"/org/tiny/resolve/main/sub%2fa%20b.json/x", "EntryNotFound"},
      {"/datasets/org/tiny/resolve/main/config.json", "EntryNotFound"},
      {"/org/tiny/resolve/v2/config.json", "RevisionNotFound"},
      {"/api/models/org/tiny/revision/" + std::string(40, 'd'), "RevisionNotFound"},
      {"/api/models/org/tiny/tree/v2", "RevisionNotFound"},
      {"/org/absent/resolve/main/config.json", "RepoNotFound"},
      {"/api/models/org/absent", "RepoNotFound"},
      {"/api/datasets/gpt2/revision/main", "RepoNotFound"},
      {"/api/models/..%2f..%2fetc/tree/main", "RepoNotFound"},
  };
  for (const auto& [target, code] : rows) {
    CAPTURE(target);
    const Response response = get(catalogue, target);
    CHECK(response.status == 404);
    CHECK(response.header("X-Error-Code") == code);
    CHECK(response.header("X-Repo-Commit") == (code == "EntryNotFound" ? kSampleCommit : ""));
    CHECK(Json::parse(std::get<std::string>(response.body)).contains("error"));
  }
  for (const std::string target : {"/api/models", "/api/whoami-v2", "/api/models/org/tiny/xet-read-token/main",
                                   "/org/tiny/resolve/main", "/org/tiny/raw/main/config.json", "/api/spaces/org/tiny"})
    CHECK(get(catalogue, target).header("X-Error-Code").empty());
}

TEST_CASE("paths are asked for in a form or in JSON, and those that are not there are left out") {
  const Catalogue catalogue = sample_catalogue();
  const std::string target = "/api/models/org/tiny/paths-info/main";
  const Paths found = {"f config.json", "d sub", "f sub/a b.json"};
  CHECK(paths_in(json_of(post(catalogue, target, kForm,
                              "paths=sub%2Fa+b.json&expand=False&paths=absent&paths=sub&paths=config.json"
                              "&paths=config.json&paths=%zz"))) == found);
  CHECK(paths_in(json_of(post(catalogue, target, "application/json; charset=utf-8",
                              R"({"paths":["sub/a b.json","sub","absent","config.json"],"expand":false})"))) == found);
  CHECK(paths_in(json_of(post(catalogue, target, "application/json", R"({"paths":"sub"})"))) == Paths{"d sub"});
  CHECK(json_of(post(catalogue, target, "", "")).empty());
  for (const std::string bad :
       {"", "[]", "{}", R"({"paths":1})", R"({"paths":[1]})", R"({"paths":["a"],"paths":["b"]})"})
    CHECK(post(catalogue, target, "application/json", bad).status == 400);
  CHECK(get(catalogue, target).header("Allow") == "POST");
  CHECK(post(catalogue, "/api/models/org/absent/paths-info/main", kForm, "paths=a").header("X-Error-Code") ==
        "RepoNotFound");
  for (const std::string other :
       {"/api/models/org/tiny", "/api/models/org/tiny/tree/main", "/simple/", "/org/tiny/resolve/main/config.json"})
    CHECK(post(catalogue, other, kForm, "paths=a").status == 405);
}

TEST_CASE("branches and commits are listed") {
  const Catalogue catalogue = sample_catalogue();
  const Json refs = json_of(get(catalogue, "/api/models/org/tiny/refs"));
  CHECK(refs["branches"].size() == 2);
  CHECK(refs["branches"][0] == Json{{"name", "main"}, {"ref", "refs/heads/main"}, {"targetCommit", kSampleCommit}});
  CHECK(refs["tags"].empty());
  CHECK(json_of(get(catalogue, "/api/models/org/tiny/commits/main"))[0]["id"] == kSampleCommit);
}

TEST_CASE("ModelScope's clients get files, folders and branches of its models, and of no others") {
  Catalogue catalogue = sample_catalogue();
  add_repository(catalogue, {.hub = bundle::HubKind::ModelScope, .id = "Org/Tiny"}, {"config.json", "sub/a b.json"});
  auto& commits = catalogue.repositories.at({.hub = bundle::HubKind::ModelScope, .id = "Org/Tiny"}).commits;
  commits["v2"] = commits.at(kSampleCommit);
  commits["v2"].id = "v2", commits["v2"].created = "2026-02-01T00:00:00Z";
  const std::string model = "/api/v1/models/Org/Tiny";
  const auto files = [&](const std::string& query) {
    Paths paths;
    const Json listed = json_of(get(catalogue, model + "/repo/files" + query));
    for (const Json& item : listed["Data"]["Files"])
      paths.push_back(item["Type"].get<std::string>() + " " + item["Path"].get<std::string>());
    return paths;
  };
  CHECK(files("") == Paths{"blob config.json", "tree sub"});
  CHECK(files("?Revision=master&Recursive=True") == Paths{"blob config.json", "tree sub", "blob sub/a b.json"});
  CHECK(files("?Revision=v2&Recursive=false&Root=/sub/") == Paths{"blob sub/a b.json"});
  const Json item = json_of(get(catalogue, model + "/repo/files"))["Data"]["Files"][0];
  CHECK(item["Size"] == 1000);
  CHECK(item["Sha256"] == bundle::sha256(bundle::as_bytes("config.json")).hex());
  const Response part = get(catalogue, model + "/repo?Revision=v2&FilePath=sub%2Fa%20b.json", "bytes=0-9");
  CHECK(part.status == 206);
  CHECK(part.body_size() == 10);
  CHECK(json_of(get(catalogue, model))["Data"]["Name"] == "Tiny");
  CHECK(json_of(get(catalogue, model + "/revisions"))["Data"]["RevisionMap"]["Branches"].size() == 3);
  for (const std::string none :
       {"/repo?Revision=v3&FilePath=config.json", "/repo?FilePath=absent", "/repo?FilePath=sub", "/repo",
        "/repo/files?Root=absent", "/repo/files?Revision=v3", "/repo/tree", "/x"})
    CHECK(get(catalogue, model + none).status == 404);
  CHECK(get(catalogue, "/api/v1/models/org/tiny").status == 404);
  CHECK(get(catalogue, "/api/models/Org/Tiny").header("X-Error-Code") == "RepoNotFound");
  CHECK(post(catalogue, model, kForm, "").status == 405);
}

TEST_CASE("ModelScope's clients get a data set in pages, by the name that stands for its number") {
  Catalogue catalogue = sample_catalogue();
  Paths names;
  for (int i = 0; i < 450; ++i) names.push_back("part/" + std::to_string(1000 + i) + ".txt");
  add_repository(catalogue, {bundle::HubKind::ModelScope, bundle::RepositoryKind::Dataset, "Org/Rows"}, names);
  add_repository(catalogue, {.hub = bundle::HubKind::ModelScope, .id = "Org/Tiny"}, {"config.json"});
  const Json info = json_of(get(catalogue, "/api/v1/datasets/Org/Rows"))["Data"];
  CHECK(info["Type"] == 4);
  const std::string data = "/api/v1/datasets/" + info["Id"].get<std::string>();
  const auto files = [&](const std::string& query) {
    return json_of(get(catalogue, data + "/repo/tree" + query))["Data"]["Files"];
  };
  Paths seen;
  for (std::size_t page = 1, count = 200; count == 200; ++page) {
    const Json items = files("?Revision=master&Recursive=True&PageSize=200&PageNumber=" + std::to_string(page));
    for (const Json& item : items)
      if (item["Type"] == "blob") seen.push_back(item["Path"]);
    count = items.size();
    REQUIRE(page < 4);
  }
  CHECK(seen == names);
  CHECK(files("?Recursive=True").size() == 451);
  CHECK(files("?Recursive=True&PageNumber=2").empty());
  CHECK(files("?Root=part&PageSize=100&PageNumber=5").size() == 50);
  CHECK(files("?Root=part&PageSize=999999999&PageNumber=999999999").empty());
  const Json folder = files("?Root=/&Recursive=False")[0];
  CHECK(folder["Type"] == "tree");
  CHECK(folder["Sha256"] == "");
  const std::string file = data + "/repo?Source=SDK&Revision=master&FilePath=part%2F1003.txt&View=False";
  CHECK(get(catalogue, file, "bytes=0-9").body_size() == 10);
  CHECK(get(catalogue, file).header("ETag") == "\"" + bundle::sha256(bundle::as_bytes(names[3])).hex() + "\"");
  CHECK(json_of(get(catalogue, data + "/revisions"))["Data"]["RevisionMap"]["Branches"][0]["Revision"] ==
        kSampleCommit);
  for (const std::string bad : {"0", "-1", "1.5", "+1", "1e3", "1000000000", "18446744073709551617", "%20"})
    for (const std::string key : {"PageSize", "PageNumber"})
      CHECK(get(catalogue, data + "/repo/tree?" + key + "=" + bad).status == 400);
  for (const std::string none : {"/repo/files", "/repo/tree?Root=absent", "/repo?FilePath=absent", "/x"})
    CHECK(get(catalogue, data + none).status == 404);
  for (const std::string none : {"/api/v1/datasets/Org/Tiny", "/api/v1/models/Org/Rows", "/api/v1/datasets/1/repo/tree",
                                 "/api/v1/datasets/org/tiny"})
    CHECK(get(catalogue, none).status == 404);
}

TEST_CASE("a name that is a route's word is a repository, too") {
  Catalogue catalogue = sample_catalogue();
  add_repository(catalogue, {.id = "gpt2/refs"}, {"a"});
  add_repository(catalogue, {.id = "simple/resolve"}, {"a"});
  CHECK(json_of(get(catalogue, "/api/models/gpt2/refs"))["id"] == "gpt2/refs");
  CHECK(json_of(get(catalogue, "/api/models/gpt2/tree/main")).size() == 1);
  CHECK(get(catalogue, "/simple/resolve/resolve/main/a").status == 307);
  CHECK(get(catalogue, "/simple/torch/").status == 200);
}

TEST_CASE("the one body that is wanted is read whole, however it comes, and the connection goes on behind it") {
  Live live({.items = hub_items({{.name = {.id = "org/tiny"}, .files = {{"a", "1"}, {"b", ""}}}})});
  const std::string target = "/api/models/org/tiny/paths-info/main";
  RawClient client(live.port);
  const auto head = [&](std::size_t size) {
    return "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " + std::to_string(size) + "\r\n";
  };
  const std::string body = "paths=a&paths=c", long_body = "paths=a&x=" + std::string(100'000, 'x');
  client.send(request_text(target, head(body.size()), "POST") + body +
              request_text("/org/tiny/resolve/" + kSampleCommit + "/a"));
  CHECK(Json::parse(client.receive().body).size() == 1);
  CHECK(client.receive().body == "1");
  client.send(request_text(target, head(long_body.size()), "POST") + long_body.substr(0, 5));
  client.send(long_body.substr(5));
  CHECK(Json::parse(client.receive().body).size() == 1);
  client.send(request_text("/org/tiny/resolve/" + kSampleCommit + "/b"));
  const RawResponse empty = client.receive();
  CHECK(empty.status == 200);
  CHECK(empty.headers.at("x-repo-commit") == std::string(40, 'c'));
  CHECK(empty.headers.at("content-length") == "0");
}

TEST_CASE("a body that is too long, or that nobody wants, is not read, and ends the connection") {
  Live live({.items = hub_items({{.name = {.id = "org/tiny"}, .files = {{"a", "1"}}}})});
  const std::string smuggled = request_text("/simple/");
  const auto status = [&](const std::string& target, const std::string& length) {
    RawClient client(live.port);
    client.send(request_text(target, "Content-Length: " + length + "\r\n", "POST") + smuggled);
    const int got = client.receive().status;
    CHECK(client.ended());
    return got;
  };
  CHECK(status("/api/models/org/tiny/paths-info/main", "262145") == 413);
  CHECK(status("/api/models/org/tiny/paths-info/main", "18446744073709551615") >= 400);
  CHECK(status("/api/models/org/tiny/paths-info/main", "99999999999999999999") == 400);
  CHECK(status("/api/models/org/tiny", std::to_string(smuggled.size())) == 405);
  live.finish();
  CHECK(live.logged().find(" /simple/ 200 ") == std::string::npos);
}

TEST_CASE("a client that does not finish the body that it announced is let go") {
  Live live({.items = hub_items({{.name = {.id = "org/tiny"}, .files = {{"a", "1"}}}})},
            {.request_timeout = std::chrono::milliseconds(200)});
  RawClient client(live.port);
  client.send(request_text("/api/models/org/tiny/paths-info/main", "Content-Length: 10\r\n", "POST") + "paths");
  CHECK(client.ended());
}

TEST_CASE("a client that would lose its token on the way to a commit gets the branch's file where it asks") {
  Live live({.items = hub_items({{.name = {.id = "org/tiny"}, .files = {{"a", "1"}}}})});
  const auto status = [&](const std::string& agent, bool token) {
    return fetch(live.port, "/org/tiny/resolve/main/a",
                 "User-Agent: " + agent + "\r\n" + (token ? "Authorization: Bearer x\r\n" : ""))
        .status;
  };
  for (const std::string old : {"unknown/None; hf_hub/0.20.3; python/3.11", "hf_hub/0.8.1", "hf_hub/0.16.4"}) {
    CAPTURE(old);
    CHECK(status(old, true) == 200);
    CHECK(status(old, false) == 307);
  }
  for (const std::string newer : {"hf_hub/0.21.0; python/3.11", "hf_hub/0.36.0", "hf_hub/2.4.0", "hf_hub/0.",
                                  "hf_hub/0.x", "hf_hub/0.200.1", "hf_hub/0..", "curl/8"}) {
    CAPTURE(newer);
    CHECK(status(newer, true) == 307);
  }
}
