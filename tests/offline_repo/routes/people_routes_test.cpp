// SPDX-License-Identifier: Apache-2.0
// Pages for people at the addresses of repositories and images: what they say, where their links lead, and that no text
// of a stranger acts in them. Also the older JSON API.
#include "bundle/core/json.hpp"
#include "offline_repo/catalogue/cards.hpp"
#include "offline_repo/protocols/project_json.hpp"
#include "offline_repo/protocols/version_order.hpp"
#include "offline_repo/routes/routes.hpp"
#include "tests/offline_repo/hub_bundle.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/sample_catalogue.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;

namespace {

Response get(const Catalogue& catalogue, const std::string& target, const std::string& root = {}) {
  return respond(catalogue, {.method = "GET", .target = target, .host = "repo:8080", .root = root});
}

std::string text_of(const Response& response) {
  return std::get<std::string>(response.body);
}

bool has(const Response& response, const std::string& text) {
  return text_of(response).find(text) != std::string::npos;
}

constexpr char kCard[] = "---\nlicense: \"apache-2.0\"\ntags: [x]\n---\n# Tiny <script>\n";

Catalogue with_card() {
  Catalogue catalogue = sample_catalogue();
  const auto card = std::make_shared<const std::string>(kCard);
  auto& files = catalogue.repositories.at({.id = "org/tiny"}).commits.at(kSampleCommit).files;
  files[kCardFile] = {.size = card->size(), .sha256 = bundle::sha256(bundle::as_bytes(*card))};
  catalogue.cards[files[kCardFile].sha256] = card;
  return catalogue;
}

}  // namespace

TEST_CASE("a model has a page at the address that people paste: how to get it, licence, files with digests, its card") {
  const Catalogue catalogue = with_card();
  for (const std::string& target :
       std::vector<std::string>{"/org/tiny", "/org/tiny/", "/org/tiny/tree/main", "/org/tiny/tree/v1/sub",
                                "/org/tiny/tree/" + kSampleCommit}) {
    CAPTURE(target);
    const Response page = get(catalogue, target);
    CHECK(page.status == 200);
    CHECK(page.route == RouteKind::Front);
    CHECK(page.header("Content-Security-Policy").starts_with("default-src 'none'"));
    CHECK(has(page, "HF_ENDPOINT=http://repo:8080 hf download org/tiny --revision " + kSampleCommit));
    CHECK(has(page, "<th scope=\"row\">Licence</th><td><bdi>apache-2.0</bdi></td>"));
    CHECK(has(page, "<bdi>v1</bdi>"));
    CHECK(has(page, "<a href=\"/org/tiny/resolve/" + kSampleCommit + "/sub/a%20b.json\"><bdi>sub/a b.json</bdi></a>"));
    CHECK(has(page, bundle::sha256(bundle::as_bytes("config.json")).hex()));
    CHECK(has(page, "# Tiny &lt;script&gt;"));
    CHECK_FALSE(has(page, "license:"));
    CHECK_FALSE(has(page, "<script"));
  }
  CHECK(has(get(catalogue, "/org/tiny", "/c/prod"), "href=\"/c/prod/org/tiny/resolve/"));
  CHECK(has(get(catalogue, "/datasets/org/tiny"), "hf download --repo-type dataset org/tiny"));
  CHECK(has(get(catalogue, "/datasets/org/tiny"), "rows.jsonl"));
  CHECK(has(get(catalogue, "/gpt2?lang=zh"), "<html lang=\"zh\">"));
  const Response blob = get(catalogue, "/org/tiny/blob/main/sub/a%20b.json");
  CHECK(blob.status == 302);
  CHECK(blob.header("Location") == "/org/tiny/resolve/" + kSampleCommit + "/sub/a%20b.json");
}

TEST_CASE("what nobody carries has no page, whatever its address looks like") {
  const Catalogue catalogue = with_card();
  for (const std::string none : {"/org", "/org/other", "/org/tiny/tree", "/org/tiny/tree/absent",
                                 "/org/tiny/blob/main/absent", "/org/tiny/settings", "/datasets", "/datasets/",
                                 "/datasets/gpt2", "/org//tiny", "/org/tiny//", "/x/../org/tiny"}) {
    CAPTURE(none);
    const Response response = get(catalogue, none);
    CHECK(response.status == 404);
    CHECK(response.route == RouteKind::Other);
  }
}

TEST_CASE("an image has a page at its name, with the line that pulls it") {
  const TempDir dir;
  const MadeBundle made =
      make_bundle(dir / "bundle", {.name = "env", .version = 7, .items = image_items({TinyImage{}})});
  std::vector<bundle::VerifiedBundle> bundles;
  bundles.push_back(bundle::verify(bundle::open(made.folder), made.trusted, kNow));
  const Catalogue catalogue = make_catalogue(std::move(bundles));
  const Response page = get(catalogue, "/org/app");
  CHECK(page.status == 200);
  CHECK(has(page, "<th scope=\"col\">Last check</th>"));
  CHECK(has(page, "<td><time>" + catalogue.checks[0]->times().verified + "</time> (seal, chunk list, sizes)</td>"));
  CHECK(has(get(catalogue, "/org/app?lang=zh"), "最近检查"));
  CHECK(has(page, "podman pull --tls-verify=false repo:8080/org/app:1.0"));
  CHECK(has(page, "<td><bdi>env-7</bdi></td>"));
}

TEST_CASE("the page of a model names the bundles that its files come from, and when each was checked last") {
  const TempDir dir;
  const MadeBundle made = make_bundle(
      dir / "bundle", {.name = "env",
                       .version = 7,
                       .items = hub_items({{.name = {.id = "org/small"}, .files = {{"README.md", kCard}}}})});
  const Contents contents = read_contents(
      std::make_shared<const bundle::VerifiedBundle>(bundle::verify(bundle::open(made.folder), made.trusted, kNow)));
  const Catalogue catalogue = catalogue_of({contents});
  const Response before = get(catalogue, "/org/small");
  CHECK(has(before, "<th scope=\"row\">In the bundle</th><td><bdi>env-7</bdi></td>"));
  CHECK(has(before, "<th scope=\"row\">Last check</th><td><time>" + contents->check->times().verified +
                        "</time> (seal, chunk list, sizes)</td>"));
  contents->check->note_verified(kNow);  // as the views stay, what is checked meanwhile is shown
  contents->check->note_read(kNow);
  const std::string now = "<time>" + bundle::write_time(kNow) + "</time>";
  const Response after = get(catalogue, "/org/small");
  CHECK(has(after, "<td>" + now + " (each byte)<br>" + now + " (seal, chunk list, sizes)</td>"));
  CHECK(after.header("ETag") != before.header("ETag"));
  CHECK(has(get(catalogue, "/"), "<td>" + now + " (each byte)<br>"));
  CHECK(has(get(catalogue, "/org/small?lang=zh"), now + "（全部字节）<br>" + now + "（封签、摘要表、大小）"));
}

TEST_CASE("a card comes from the bundle that carries it, and one that is too large is a file alone") {
  const TempDir dir;
  const std::string large = "---\nlicense: mit\n---\n" + std::string(kMaxCard, 'x');
  const MadeBundle made = make_bundle(
      dir / "bundle",
      {.items = hub_items({{.name = {.id = "org/small"}, .files = {{"README.md", kCard}, {"sub/README.md", "no"}}},
                           {.name = {.id = "org/large"}, .files = {{"README.md", large}}}})});
  const Contents contents = read_contents(
      std::make_shared<const bundle::VerifiedBundle>(bundle::verify(bundle::open(made.folder), made.trusted, kNow)));
  CHECK(contents->cards.size() == 1);
  const Catalogue catalogue = catalogue_of({contents});
  CHECK(has(get(catalogue, "/org/small"), "apache-2.0"));
  CHECK(has(get(catalogue, "/org/small"), "# Tiny &lt;script&gt;"));
  CHECK_FALSE(has(get(catalogue, "/org/large"), "Licence"));
  CHECK(has(get(catalogue, "/org/large"), "README.md"));
}

TEST_CASE("a card's front matter is one plain line a key, and a broken one is only text") {
  CHECK(card_value(kCard, "license") == "apache-2.0");
  CHECK(card_value(kCard, "tags") == "[x]");
  CHECK(card_value(kCard, "title").empty());
  CHECK(card_text(kCard) == "# Tiny <script>\n");
  for (const std::string broken :
       {"", "---", "---\nlicense: mit\n", "text\n---\nlicense: mit\n---\n", "--- \nlicense: mit\n---\n"}) {
    CAPTURE(broken);
    CHECK(card_value(broken, "license").empty());
    CHECK(card_text(broken) == broken);
  }
  CHECK(card_value("---\r\nlicense: mit\r\n---\r\nx", "license") == "mit");
  CHECK(card_value("---\n license: nested\nlicense:\n---\n", "license").empty());
}

TEST_CASE("the older JSON API tells a project's newest version, its files with digests, and what it requires") {
  Catalogue catalogue = sample_catalogue();
  IndexedWheel& wheel = catalogue.projects.at("demo-kit").wheels.at("Demo_Kit-1.1-py3-none-any.whl");
  wheel.metadata =
      "Name: x\nVersion: 1.1\nSummary: A kit\nRequires-Dist: torch>=2\nRequires-Dist: numpy\n\nRequires-Dist: no\n";
  const Response response = get(catalogue, "/pypi/Demo_Kit/json");
  CHECK(response.status == 200);
  CHECK(response.header("Content-Type") == "application/json");
  CHECK(response.header("X-PyPI-Last-Serial") == "1767323045");
  const bundle::Json json = bundle::parse_json(text_of(response), "pypi");
  CHECK(json["info"]["name"] == "demo-kit");
  CHECK(json["info"]["version"] == "1.1");
  CHECK(json["info"]["summary"] == "A kit");
  CHECK(json["info"]["requires_dist"] == bundle::Json::array({"torch>=2", "numpy"}));
  CHECK(json["releases"].size() == 2);
  REQUIRE(json["urls"].size() == 1);
  CHECK(json["urls"][0]["digests"]["sha256"] == wheel.sha256.hex());
  CHECK(json["urls"][0]["url"] == "http://repo:8080/files/" + wheel.sha256.hex() + "/Demo_Kit-1.1-py3-none-any.whl");
  CHECK(bundle::parse_json(text_of(get(catalogue, "/pypi/demo-kit/1.0/json")), "pypi")["info"]["version"] == "1.0");
  for (const std::string none :
       {"/pypi/absent/json", "/pypi/demo-kit/9/json", "/pypi/demo-kit", "/pypi/demo-kit/json/"})
    CHECK(get(catalogue, none).status == 404);
  CHECK(respond(catalogue, {.method = "GET", .target = "/simple/demo-kit/", .accept = "application/json"})
            .header("Content-Type") == "application/vnd.pypi.simple.v1+json");
}

TEST_CASE("versions are in the order of PEP 440, in every spelling that it knows") {
  // As packaging 21.3 sorts them; on one line they are equal.
  const std::vector<std::vector<std::string>> order = {{"1.0.dev456", "1.0dev456"},
                                                       {"1.0a1", "1.0alpha1", "1.0-A.1"},
                                                       {"1.0a2.dev456"},
                                                       {"1.0a12.dev456"},
                                                       {"1.0a12"},
                                                       {"1.0b1.dev456"},
                                                       {"1.0b2"},
                                                       {"1.0b2.post345.dev456"},
                                                       {"1.0b2.post345", "1.0b2-345"},
                                                       {"1.0rc1.dev456"},
                                                       {"1.0rc1", "1.0c1", "1.0-preview_1"},
                                                       {"1.0", "1", "1.0.0", "v1.0"},
                                                       {"1.0+abc.5"},
                                                       {"1.0+abc.7", "1.0+ABC-7"},
                                                       {"1.0+5"},
                                                       {"1.0.post456.dev34"},
                                                       {"1.0.post456", "1.0-456", "1.0.rev456"},
                                                       {"1.1.dev1"},
                                                       {"1.10"},
                                                       {"99999999999999999999999"},
                                                       {"1!0.1"}};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::string& one : order[i]) {
      CAPTURE(one);
      REQUIRE(version_order(one));
      CHECK(version_order(one) == version_order(order[i].front()));
      if (i > 0) CHECK(version_order(order[i - 1].front()) < version_order(one));
    }
  for (const char* none : {"", "x", "1.", "1.0+", "1.0+a..b", "1.0 ", "1.0a1b2", "!1", "1.0.dev1.post1"})
    CHECK_FALSE(version_order(none));
}

TEST_CASE("of two versions the newer one is found by PEP 440, and a release goes before what comes before one") {
  const auto newest = [](const std::vector<std::string>& versions) {
    Project project{.name = "x"};
    for (const std::string& version : versions) {
      IndexedWheel wheel;
      wheel.version = version;
      project.wheels["x-" + version] = wheel;
    }
    return newest_version(project);
  };
  CHECK(newest({"1.9", "1.10", "1.2"}) == "1.10");
  CHECK(newest({"2.0rc1", "2.0", "2.0.dev3"}) == "2.0");
  CHECK(newest({"2.0.post1", "2.0"}) == "2.0.post1");
  CHECK(newest({"2.0", "2.0+cu130"}) == "2.0+cu130");
  CHECK(newest({"99999999999999999999999", "1"}) == "99999999999999999999999");
  CHECK(newest({"2.0", "2.1rc1"}) == "2.0");
  CHECK(newest({"2.1a1", "2.1rc1"}) == "2.1rc1");
  CHECK(newest({"none", "0.1"}) == "0.1");
  CHECK(newest({}).empty());
}
