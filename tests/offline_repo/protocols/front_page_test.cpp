// SPDX-License-Identifier: Apache-2.0
// The page for people: what it says, in which language, for which address, and that no text of a stranger acts in it.
#include "offline_repo/protocols/front_page.hpp"

#include <doctest/doctest.h>

#include "tests/offline_repo/sample_catalogue.hpp"
#include "tests/support/tiny_bundle.hpp"
#include "tests/support/tiny_image.hpp"

using namespace sealift;
using namespace sealift::offline_repo;
using namespace sealift::test;

namespace {

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

std::string page_of(const Catalogue& catalogue, PageLanguage language = PageLanguage::English,
                    const std::string& query = {}) {
  return FrontPage(catalogue, language).text(page_address("repo:8080", "", "/v2"), query);
}

}  // namespace

TEST_CASE("the front page names what is here, and gives lines that work as they stand") {
  const std::string page = page_of(sample_catalogue());
  CHECK(has(page, "<html lang=\"en\">"));
  CHECK(has(page, "<a href=\"simple/demo-kit/\">demo-kit</a></td><td><bdi>1.0, 1.1</bdi>"));
  CHECK(has(page, "<bdi>org/tiny</bdi>"));
  CHECK(has(page, "pip install --index-url http://repo:8080/simple/ --trusted-host repo:8080 demo-kit"));
  CHECK(page.find("<h2 id=\"use\">") < page.find("<table>"));
  CHECK(has(page, "uv pip install --default-index http://repo:8080/simple/ demo-kit"));
  CHECK(has(page, "HF_ENDPOINT=http://repo:8080 hf download gpt2"));
  CHECK_FALSE(has(page, "docker pull"));
  CHECK_FALSE(has(page, "ModelScope"));
  CHECK_FALSE(has(page, "requirements.txt"));  // demo-kit has two versions

  Catalogue closure = sample_catalogue();
  closure.projects.at("demo-kit").wheels.erase("Demo_Kit-1.0-py3-none-any.whl");
  add_repository(closure, {bundle::HubKind::ModelScope, bundle::RepositoryKind::Dataset, "Org/Rows"}, {"a.txt"});
  const std::string other = page_of(closure);
  CHECK(
      has(other,
          "--index-url http://repo:8080/simple/ --trusted-host repo:8080 -r http://repo:8080/wheels/requirements.txt"));
  CHECK(has(other, "MODELSCOPE_ENDPOINT=http://repo:8080 modelscope download --repo-type dataset Org/Rows"));
}

TEST_CASE("the front page tells a bundle's version, size and signer, its images, and what is not served") {
  const TempDir dir;
  const MadeBundle made =
      make_bundle(dir / "bundle", {.name = "env", .version = 7, .items = image_items({TinyImage{}})});
  std::vector<bundle::VerifiedBundle> bundles;
  bundles.push_back(bundle::verify(bundle::open(made.folder), made.trusted, kNow));
  Catalogue catalogue = make_catalogue(std::move(bundles));
  catalogue.left_out.push_back({"other-1: <b>", "另一包：<b>"});
  const std::string page = page_of(catalogue);
  CHECK(has(page, "<a href=\"b/env-7/\"><bdi>env-7</bdi></a></td><td><bdi>test</bdi></td>"));
  CHECK(has(page, "sha256:" + catalogue.sources[0]->identity().hex()));
  CHECK(has(page, "<a href=\"b/env-7/entries/env/\">"));
  CHECK(has(page, catalogue.sources[0]->signers()[0].hex().substr(0, 16)));
  CHECK(has(page, "<th scope=\"col\">Last check</th>"));
  CHECK(has(FrontPage(catalogue, PageLanguage::Chinese).text(page_address("repo", "http", "/v2"), ""), "最近检查"));
  const std::string checked = catalogue.checks[0]->times().verified;
  CHECK(checked.size() == std::string("2026-01-01T00:00:00Z").size());
  CHECK(has(page, "<td><time>" + checked + "</time> (seal, chunk list, sizes)</td>"));
  CHECK(has(page, "<a href=\"org/app\"><bdi>org/app</bdi></a></td><td><bdi>1.0</bdi>"));
  CHECK(has(page, "docker pull repo:8080/org/app:1.0"));
  CHECK(has(page, "{&quot;insecure-registries&quot;: [&quot;repo:8080&quot;]}\ndocker pull"));
  CHECK(has(page, "podman pull --tls-verify=false repo:8080/org/app:1.0"));
  CHECK(has(page, "skopeo copy --src-tls-verify=false docker://repo:8080/org/app:1.0 oci:images:org/app"));
  CHECK(has(page, "oras pull --plain-http repo:8080/bundles/env:7"));
  CHECK(has(page, "other-1: &lt;b&gt;"));
  const std::string chinese = FrontPage(catalogue, PageLanguage::Chinese).text(page_address("repo", "http", "/v2"), "");
  CHECK(has(chinese, "另一包：&lt;b&gt;"));
  CHECK_FALSE(has(chinese, "other-1"));
  const std::string channel =
      FrontPage(catalogue, PageLanguage::English).text(page_address("repo", "https", "/c/prod/v2"), "");
  CHECK(has(channel, "<pre tabindex=\"0\">docker pull repo/c/prod/org/app:1.0"));
  CHECK(has(channel, "podman pull repo/c/prod/org/app:1.0"));
  CHECK(has(channel, "oras pull repo/c/prod/bundles/env:7"));
  for (const char* word : {"trusted-host", "insecure", "tls-verify", "plain-http"}) CHECK_FALSE(has(channel, word));
}

TEST_CASE("search leaves the rows that hold every word, whatever their case, without a script") {
  const Catalogue catalogue = sample_catalogue();
  const std::string found = page_of(catalogue, PageLanguage::English, "KIT demo");
  CHECK(has(found, "simple/demo-kit/"));
  CHECK_FALSE(has(found, "simple/torch/"));
  CHECK(has(found, "value=\"KIT demo\""));
  CHECK(has(page_of(catalogue, PageLanguage::English, "nothing-has-this"), "Nothing here"));
  CHECK_FALSE(has(page_of(catalogue), "<script"));
}

TEST_CASE("an empty server's page says that nothing is served, and not that a search found nothing") {
  const std::string page = page_of(Catalogue{});
  CHECK(has(page, "No bundle is served yet."));
  CHECK_FALSE(has(page, "these words"));
  CHECK_FALSE(has(page, "Lines to paste"));
}

TEST_CASE("text of strangers stays text on the front page") {
  const std::string hostile = "\"><script>alert('1')</script>&";
  IndexedWheel wheel = sample_wheel("a-1-py3-none-any.whl", "1" + hostile);
  wheel.metadata = "Name: a\r\nLicense: " + hostile + "\r\n\r\nLicense-Expression: MIT\n";
  Catalogue catalogue{.bundles = {hostile},
                      .projects = {{"a" + hostile, {.name = "a" + hostile, .wheels = {{"a", wheel}}}}}};
  for (const PageLanguage language : {PageLanguage::English, PageLanguage::Chinese}) {
    const std::string page = FrontPage(catalogue, language).text(page_address(hostile, hostile, "/v2"), hostile);
    CHECK_FALSE(has(page, "<script"));
    CHECK_FALSE(has(page, "'1'"));
    CHECK_FALSE(has(page, "MIT"));  // of the description, not of the headers
  }
  CHECK(page_address(hostile, "", "/v2").url == "http://THIS-ADDRESS");
  CHECK(page_address("[::1]:80", "https", "/v2").url == "https://[::1]:80");
  CHECK(page_policy().starts_with("default-src 'none'"));
}

TEST_CASE("a package's licence is its expression, else its classifier, else what it says") {
  Catalogue catalogue = sample_catalogue();
  IndexedWheel& wheel = catalogue.projects.at("torch").wheels.begin()->second;
  for (const auto& [metadata, shown] :
       {std::pair<std::string, std::string>{"License-Expression: MIT\nLicense: x\n", "MIT"},
        {"Classifier: License :: OSI Approved :: BSD License\n", "BSD License"},
        {"license: Zlib\n", "Zlib"}}) {
    wheel.metadata = metadata;
    CHECK(has(page_of(catalogue), "<bdi>" + shown + "</bdi>"));
  }
}

TEST_CASE("the language is the one that is asked for, else the browser's, else English") {
  CHECK(choose_language("zh", "en") == PageLanguage::Chinese);
  CHECK(choose_language("en", "zh") == PageLanguage::English);
  CHECK(choose_language("", "zh-CN,zh;q=0.9,en;q=0.8") == PageLanguage::Chinese);
  CHECK(choose_language("", "en-US,en;q=0.9,zh;q=0.8") == PageLanguage::English);
  CHECK(choose_language("", "de, zh;q=0.5, en;q=0.4") == PageLanguage::Chinese);
  CHECK(choose_language("", "") == PageLanguage::English);
  CHECK(choose_language("x", ";;,q=,,zh;q=") == PageLanguage::Chinese);
  CHECK(has(page_of(sample_catalogue(), PageLanguage::Chinese), "软件仓库"));
}
