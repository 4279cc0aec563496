// SPDX-License-Identifier: Apache-2.0
// Requests as values: each route, each refusal, and paths that try to leave.
#include "offline_repo/routes/routes.hpp"

#include <doctest/doctest.h>

#include "tests/offline_repo/sample_catalogue.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using sealift::test::sample_catalogue;

namespace {

constexpr char kJsonType[] = "application/vnd.pypi.simple.v1+json";

Response take(const Catalogue& catalogue, const std::string& target) {
  return respond(catalogue, {.method = "GET", .target = target});
}
std::string text_of(const Response& response) {
  return std::string(response.text());
}
const IndexedWheel& torch(const Catalogue& catalogue) {
  return catalogue.projects.at("torch").wheels.begin()->second;
}
std::string torch_target(const Catalogue& catalogue) {
  return "/files/" + torch(catalogue).sha256.hex() + "/torch-2.0%2Bcu1-py3-none-any.whl";
}

}  // namespace

TEST_CASE("the index answers in the form that was asked for, and says that it varies") {
  const Catalogue catalogue = sample_catalogue();
  for (const std::string target : {"/simple/", "/simple/torch/"}) {
    const Response html = take(catalogue, target);
    CHECK(html.status == 200);
    CHECK(html.header("Content-Type") == "text/html; charset=utf-8");
    CHECK(html.header("Vary") == "Accept");
    CHECK(html.header("Cache-Control") == "no-cache");
    const Response json = respond(catalogue, {.method = "GET", .target = target, .accept = kJsonType});
    CHECK(json.header("Content-Type") == kJsonType);
    CHECK(text_of(json).starts_with("{"));
    CHECK(json.header("ETag") != html.header("ETag"));
    CHECK(take(catalogue, target + "?x=1&format=application/vnd.pypi.simple.v1+json").header("Content-Type") ==
          kJsonType);
    CHECK(take(catalogue, target + "?format=application%2Fvnd.pypi.simple.v1%2Bjson").header("Content-Type") ==
          kJsonType);
    const Response none = respond(catalogue, {.method = "GET", .target = target, .accept = "image/png"});
    CHECK(none.status == 406);
    CHECK(none.header("Vary") == "Accept");
  }
}

TEST_CASE("pages are made once: what changes afterwards is not rendered for a request") {
  Catalogue catalogue = sample_catalogue();
  const Pages pages(catalogue);
  for (const std::string target : {"/", "/simple/", "/simple/torch/"}) {
    const Response before = take(catalogue, target);
    Catalogue changed = catalogue;
    changed.bundles.push_back("later-1");
    changed.projects["later"].name = "later";
    changed.projects.at("torch").wheels.clear();
    CHECK(text_of(take(changed, target)) != text_of(before));
    const Response after = respond(changed, pages, {.method = "GET", .target = target});
    CHECK(text_of(after) == text_of(before));
    CHECK(after.headers == before.headers);
  }
}

TEST_CASE("index pages and METADATA are answered as their view keeps them: nothing is copied for a request") {
  const Catalogue catalogue = sample_catalogue();
  const Pages pages(catalogue);
  const auto begin = [&](const std::string& target, const std::string& accept = "") {
    return respond(catalogue, pages, {.method = "GET", .target = target, .accept = accept}).text().data();
  };
  CHECK(begin("/simple/") == pages.project_list().html.text.data());
  CHECK(begin("/simple/torch/", kJsonType) == pages.of(catalogue.projects.at("torch")).json.text.data());
  CHECK(begin("/wheels/") == pages.wheel_list().text.data());
  CHECK(begin(torch_target(catalogue) + ".metadata") == torch(catalogue).metadata.data());
}

TEST_CASE("the page for people is at the root") {
  const Response response = take(sample_catalogue(), "/");
  CHECK(response.status == 200);
  CHECK(response.header("Content-Security-Policy").starts_with("default-src 'none'; style-src 'sha256-"));
  CHECK(response.header("Vary").starts_with("Accept-Language"));
  CHECK(text_of(response).find("href=\"simple/demo-kit/\"") != std::string::npos);
  CHECK(text_of(response).find("HF_ENDPOINT=http://THIS-ADDRESS hf") != std::string::npos);
  const Response here =
      respond(sample_catalogue(), {.method = "GET", .target = "/?lang=zh&q=TORCH", .host = "repo:8080"});
  CHECK(text_of(here).find("lang=\"zh\"") != std::string::npos);
  CHECK(text_of(here).find("simple/torch/") != std::string::npos);
  CHECK(text_of(here).find("simple/demo-kit/") == std::string::npos);
  CHECK(here.header("ETag") != response.header("ETag"));
}

TEST_CASE("missing slashes and other spellings are redirected to the one address, relatively") {
  const Catalogue catalogue = sample_catalogue();
  const std::pair<std::string, std::string> rows[] = {
      {"/simple", "simple/"},
      {"/simple?format=text/html", "simple/?format=text/html"},
      {"/simple/torch", "torch/"},
      {"/simple/Demo_Kit", "demo-kit/"},
      {"/simple/Demo_Kit/", "../demo-kit/"},
      {"/simple/demo.-_kit/?a=b", "../demo-kit/?a=b"},
      {"/simple/%44emo-kit/", "../demo-kit/"},
  };
  for (const auto& [target, location] : rows) {
    CAPTURE(target);
    const Response response = take(catalogue, target);
    CHECK(response.status == 301);
    CHECK(response.header("Location") == location);
  }
}

TEST_CASE("a wheel comes with its digest as ETag, for ever, and in ranges") {
  const Catalogue catalogue = sample_catalogue();
  const std::string etag = "\"" + torch(catalogue).sha256.hex() + "\"";
  const Response whole = take(catalogue, torch_target(catalogue));
  CHECK(whole.status == 200);
  CHECK(whole.body_size() == 1000);
  CHECK(whole.header("ETag") == etag);
  CHECK(whole.header("Accept-Ranges") == "bytes");
  CHECK(whole.header("Cache-Control") == "max-age=365000000, immutable");
  CHECK(std::get<WheelPart>(whole.body).wheel == &torch(catalogue));

  Request request{.method = "GET", .target = torch_target(catalogue), .range = "bytes=-100"};
  const Response part = respond(catalogue, request);
  CHECK(part.status == 206);
  CHECK(part.header("Content-Range") == "bytes 900-999/1000");
  CHECK(std::get<WheelPart>(part.body).range == ByteRange{900, 100});
  request.range = "bytes=1000-";
  const Response outside = respond(catalogue, request);
  CHECK(outside.status == 416);
  CHECK(outside.header("Content-Range") == "bytes */1000");
  request.range = "bytes=0-1,3-4";
  CHECK(respond(catalogue, request).status == 200);
}

TEST_CASE("If-Range and If-None-Match compare with the digest") {
  const Catalogue catalogue = sample_catalogue();
  const std::string etag = "\"" + torch(catalogue).sha256.hex() + "\"";
  Request request{.method = "GET", .target = torch_target(catalogue), .range = "bytes=0-1", .if_range = etag};
  CHECK(respond(catalogue, request).status == 206);
  for (const std::string other : {"\"x\"", "Wed, 21 Oct 2015 07:28:00 GMT", "W/\"x\""}) {
    request.if_range = other;
    CHECK(respond(catalogue, request).status == 200);
  }
  request = {.method = "GET", .target = torch_target(catalogue), .if_none_match = "\"x\", " + etag};
  const Response same = respond(catalogue, request);
  CHECK(same.status == 304);
  CHECK(same.body_size() == 0);
  CHECK(same.header("ETag") == etag);
  request = {.method = "GET", .target = "/simple/torch/"};
  request.if_none_match = respond(catalogue, request).header("ETag");
  CHECK(respond(catalogue, request).status == 304);
  CHECK(respond(catalogue, request).header("Vary") == "Accept");
}

TEST_CASE("a wheel's metadata has the digest that the index announces") {
  const Catalogue catalogue = sample_catalogue();
  const Response response = take(catalogue, torch_target(catalogue) + ".metadata");
  CHECK(response.status == 200);
  CHECK(text_of(response) == torch(catalogue).metadata);
  CHECK(bundle::sha256(bundle::as_bytes(text_of(response))) == torch(catalogue).metadata_sha256);
}

TEST_CASE("HEAD gets what GET gets, and a range is for GET only") {
  const Catalogue catalogue = sample_catalogue();
  for (const std::string& target :
       {std::string("/"), std::string("/simple/"), std::string("/simple/torch"), torch_target(catalogue),
        torch_target(catalogue) + ".metadata", std::string("/x")}) {
    CAPTURE(target);
    const Response head = respond(catalogue, {.method = "HEAD", .target = target}), full = take(catalogue, target);
    CHECK(head.status == full.status);
    CHECK(head.headers == full.headers);
    CHECK(head.body_size() == full.body_size());
  }
  CHECK(respond(catalogue, {.method = "HEAD", .target = torch_target(catalogue), .range = "bytes=0-1"}).status == 200);
}

TEST_CASE("anything but GET and HEAD is refused with what is allowed") {
  const Catalogue catalogue = sample_catalogue();
  for (const std::string method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", ""}) {
    const Response response = respond(catalogue, {.method = method, .target = "/simple/"});
    CHECK(response.status == 405);
    CHECK(response.header("Allow") == "GET, HEAD");
  }
}

TEST_CASE("a path that is not in the catalogue leads nowhere, however it is spelled") {
  const Catalogue catalogue = sample_catalogue();
  const std::string good = torch(catalogue).sha256.hex(), zeros(64, '0');
  const std::string name = "torch-2.0%2Bcu1-py3-none-any.whl";
  const std::string not_there[] = {
      "/simple/absent/",
      "/simple/absent",
      "/simple//",
      "/simple/torch/x",
      "/simple/torch//",
      "//simple/",
      "/Simple/",
      "/files/",
      "/files/" + good,
      "/files/" + good + "/",
      "/files/" + zeros + "/" + name,
      "/files/" + good.substr(0, 63) + "/" + name,
      "/files/" + good + "/" + name + "/",
      "/files/" + good + "/" + name + ".metadata.metadata",
      "/files/" + good + "/" + name + ".asc",
      "/files/" + good + "/Demo_Kit-1.0-py3-none-any.whl",
      "/files/../simple/",
      "/files/%2e%2e/%2e%2e/etc/passwd",
      "/files/" + good + "/..%2f..%2fetc%2fpasswd",
      "/simple/../../etc/passwd",
      "/simple/torch/../torch/",
      "/simple/%2e%2e/",
      "/files/" + good + "\\" + name,
      "/files/" + std::string(100'000, 'a') + "/" + name,
      "/simple/" + std::string(100'000, '-') + "/",
      "/robots.txt",
  };
  for (const std::string& target : not_there) {
    CAPTURE(target.substr(0, 200));
    CHECK(take(catalogue, target).status == 404);
  }
}

TEST_CASE("where a name has no current version, who misses something is sent to the page that says which") {
  Catalogue catalogue = sample_catalogue();
  const auto said = [&](const std::string& target) {
    const Response response = take(catalogue, target);
    CHECK(response.status == 404);
    return std::get<std::string>(response.body).find("no current version at present: the page at / says which") !=
           std::string::npos;
  };
  for (const std::string target : {"/simple/absent/", "/pypi/absent/json", "/org/absent", "/absent"}) {
    CAPTURE(target);
    catalogue.around.gaps.clear();
    CHECK_FALSE(said(target));
    catalogue.around.gaps.push_back({"prod/env: no version is current", "prod/env：没有当前版本"});
    CHECK(said(target));
  }
}

TEST_CASE("an address that is malformed is a bad request") {
  const Catalogue catalogue = sample_catalogue();
  for (const std::string& target :
       {std::string(), std::string("*"), std::string("simple/"), std::string("/%"), std::string("/%4"),
        std::string("/%zz"), std::string("/%00"), std::string("/a\0b", 4), std::string("/simple/%0d%0aX:1/"),
        std::string("/simple?a=%0d%0aX:1"), std::string("/simple/\x7f"), std::string("ftp://h/simple/")}) {
    CAPTURE(target);
    CHECK(take(catalogue, target).status == 400);
  }
}

TEST_CASE("a redirect never repeats a path that the client made up") {
  const Catalogue catalogue = sample_catalogue();
  CHECK(take(catalogue, "/simple//evil.example").status == 404);
  CHECK(take(catalogue, "/simple/http:%2f%2fevil.example").status == 404);
  CHECK(take(catalogue, "http://any.host/simple/torch").header("Location") == "torch/");
  CHECK(take(catalogue, "http://any.host").status == 200);
}
