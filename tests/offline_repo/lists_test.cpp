// SPDX-License-Identifier: Apache-2.0
// The wheels of a closure as one list, and a bundle's files as they are: as values, and with the real pip, uv and curl.
#include <doctest/doctest.h>

#include "offline_repo/routes/routes.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/sample_catalogue.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;
namespace fs = std::filesystem;

namespace {

Contents listed_contents(const MadeBundle& made) {
  return read_contents(
      std::make_shared<const VerifiedBundle>(sealift::bundle::verify(open(made.folder), made.trusted, kNow)));
}

Response get_listed(const Catalogue& catalogue, const std::string& target, const std::string& range = "") {
  return respond(catalogue, {.method = "GET", .target = target, .range = range});
}

std::string text_in(const Response& response) {
  if (const auto* text = std::get_if<TextPart>(&response.body)) return *text->text;
  return std::get<std::string>(response.body);
}

std::string sum_of(const std::string& bytes, const std::string& path) {
  return sha256(as_bytes(bytes)).hex() + "  " + path + "\n";
}

// One of each: a wheel, data from a folder, and a program, which is stored compressed.
TinyBundle mixed_bundle(const std::string& rows) {
  return {.name = "env",
          .items = {wheel_item({}),
                    {.path = "files/data/a b/rows.jsonl", .bytes = rows, .into = "data/a b/rows.jsonl"},
                    {.path = "programs/tool",
                     .bytes = std::string(5000, 'p'),
                     .into = "bin/tool",
                     .executable = true,
                     .encoding = Encoding::Zstd}}};
}

}  // namespace

TEST_CASE("the list of all wheels and their requirements are pages of the view, or say why there is no such list") {
  Catalogue catalogue = sample_catalogue();
  const Response links = get_listed(catalogue, "/wheels/");
  CHECK(links.status == 200);
  CHECK(links.header("Content-Type") == "text/html; charset=utf-8");
  CHECK(links.header("Cache-Control") == "no-cache");
  CHECK(links.route == RouteKind::Index);
  CHECK(get_listed(catalogue, "/wheels").header("Location") == "wheels/");
  CHECK(get_listed(catalogue, "/wheels/requirements.txt").status == 409);
  CHECK(text_in(get_listed(catalogue, "/wheels/requirements.txt")).find("/b/NAME-VERSION/") != std::string::npos);
  catalogue.projects.at("demo-kit").wheels.erase("Demo_Kit-1.0-py3-none-any.whl");
  const Response requirements = get_listed(catalogue, "/wheels/requirements.txt");
  CHECK(requirements.status == 200);
  CHECK(requirements.header("Content-Type") == "text/plain; charset=utf-8");
  CHECK(text_in(requirements).starts_with("demo-kit==1.1 --hash=sha256:"));
  CHECK(respond(catalogue, {.method = "GET",
                            .target = "/wheels/requirements.txt",
                            .if_none_match = std::string(requirements.header("ETag"))})
            .status == 304);
  for (const std::string none : {"/wheels/absent", "/wheels/requirements.txt/", "/wheels//", "/wheels/../simple/"})
    CHECK(get_listed(catalogue, none).status == 404);
}

TEST_CASE("a bundle's files are listed with their digests, and each comes in ranges with its digest as ETag") {
  const TempDir dir;
  const std::string rows = noise(3000), wheel = make_wheel({});
  const Catalogue catalogue = catalogue_of({listed_contents(make_bundle(dir / "env", mixed_bundle(rows)))});
  const std::string path = "files/data/a b/rows.jsonl", target = "/entries/env/files/data/a%20b/rows.jsonl";
  const Response sums = get_listed(catalogue, "/entries/env/SHA256SUMS");
  CHECK(sums.status == 200);
  CHECK(sums.route == RouteKind::Entry);
  CHECK(text_in(sums) == sum_of(rows, path) + sum_of(wheel, "wheels/demo-1.0-py3-none-any.whl"));
  CHECK(sums.header("ETag") == "\"" + sha256(as_bytes(text_in(sums))).hex() + "\"");
  const Response whole = get_listed(catalogue, target);
  CHECK(whole.status == 200);
  CHECK(whole.body_size() == rows.size());
  CHECK(whole.header("ETag") == "\"" + sha256(as_bytes(rows)).hex() + "\"");
  CHECK(whole.header("Content-Type") == "application/octet-stream");
  CHECK(whole.header("Cache-Control") == "no-cache");
  CHECK(whole.route == RouteKind::Entry);
  CHECK(get_listed(catalogue, target, "bytes=10-19").body_size() == 10);
  const std::string size = std::to_string(rows.size());
  for (const auto& [range, words] : {std::pair{"bytes=" + size + "-", "you have them: it is complete"},
                                     std::pair{std::string("bytes=3000000-"), "lies outside of the file's"}}) {
    const Response past = get_listed(catalogue, target, range);
    CHECK(past.status == 416);
    CHECK(past.header("Content-Range") == "bytes */" + size);
    CHECK(text_in(past).find(words) != std::string::npos);
  }
}

TEST_CASE("a path of a bundle's files that climbs, is compressed, rotten or of another bundle is not there") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const Contents contents = listed_contents(make_bundle(dir / "env", mixed_bundle("rows\n"), key));
  const Contents other = listed_contents(
      make_bundle(dir / "other", {.name = "other", .items = {{.path = "files/x", .bytes = "x", .into = "x"}}}, key));
  const Catalogue catalogue = catalogue_of({contents, other});
  CHECK(get_listed(catalogue, "/entries/other/files/x").status == 200);
  for (const std::string none :
       {"/entries/absent/", "/entries/env-1/", "/entries/env/files/x", "/entries//", "/entries/env//",
        "/entries/env/files//", "/entries/env/programs/tool", "/entries/env/programs/", "/entries/env/SHA256SUMS/",
        "/entries/env//files/data/a%20b/rows.jsonl", "/entries/env/files/../files/data/a%20b/rows.jsonl",
        "/entries/env/./files/data/a%20b/rows.jsonl", "/entries/env/files%2Fdata%2Fa%20b%2Frows.jsonl/x",
        "/entries/env/../env-1.seal", "/entries/env/%2e%2e/%2e%2e/etc/passwd", "/entries/env//etc/passwd"}) {
    CAPTURE(none);
    CHECK(get_listed(catalogue, none).status == 404);
  }
  auto rotten = std::make_shared<BundleContents>(*contents);
  rotten->rotten = {"files/data/a b/rows.jsonl"};
  const Catalogue mended = catalogue_of({rotten});
  CHECK(get_listed(mended, "/entries/env/files/data/a%20b/rows.jsonl").status == 404);
  CHECK(get_listed(mended, "/entries/env/wheels/demo-1.0-py3-none-any.whl").status == 200);
  CHECK(text_in(get_listed(mended, "/entries/env/SHA256SUMS")).find("rows") == std::string::npos);
  CHECK(text_in(get_listed(mended, "/entries/env/")).find("files/") == std::string::npos);
}

TEST_CASE("the files of bundles are folders with relative links, each with its slash") {
  const TempDir dir;
  const Catalogue catalogue = catalogue_of({listed_contents(make_bundle(dir / "env", mixed_bundle("rows\n")))});
  const auto links = [&](const std::string& target) {
    const Response response = get_listed(catalogue, target);
    CHECK(response.status == 200);
    CHECK(response.header("Content-Type") == "text/html; charset=utf-8");
    CHECK(response.header("Content-Security-Policy").starts_with("default-src 'none'"));
    std::string all;
    const std::string page = text_in(response);
    for (std::size_t at = page.find("<main"); (at = page.find("href=\"", at)) != page.npos; ++at)
      all += page.substr(at + 6, page.find('"', at + 6) - at - 6) + " ";
    return all;
  };
  CHECK(links("/entries/") == "env/ ");
  CHECK(links("/entries/env/") == "files/ wheels/ SHA256SUMS ");
  CHECK(links("/entries/env/files/data/") == "a%20b/ ");
  CHECK(links("/entries/env/files/data/a%20b/") == "rows.jsonl ");
  for (const auto& [asked, place] : {std::pair{"/entries", "entries/"},
                                     {"/entries/env", "env/"},
                                     {"/entries/env/files", "files/"},
                                     {"/entries/env/files/data/a%20b", "a%20b/"}}) {
    CAPTURE(asked);
    CHECK(get_listed(catalogue, asked).status == 301);
    CHECK(get_listed(catalogue, asked).header("Location") == place);
  }
}

TEST_CASE("of two bundles with one name the newer one's files are listed, and nothing of the older one") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const auto made = [&](std::uint64_t version, const std::string& created, const std::string& file) {
    return listed_contents(make_bundle(dir / std::to_string(version),
                                       {.name = "env",
                                        .version = version,
                                        .created = created,
                                        .items = {{.path = "files/" + file, .bytes = file, .into = file}}},
                                       key));
  };
  const Contents one = made(1, "2026-01-01T00:00:00Z", "one"), two = made(2, "2026-01-02T00:00:00Z", "two");
  for (const auto& bundles : {std::vector{one, two}, std::vector{two, one}}) {
    const Catalogue catalogue = catalogue_of(bundles);
    CHECK(text_in(get_listed(catalogue, "/entries/env/SHA256SUMS")) == sum_of("two", "files/two"));
    CHECK(get_listed(catalogue, "/entries/env/files/one").status == 404);
  }
}

TEST_CASE("pip and uv install a closure from its list, with digests, and curl takes a bundle's files by theirs") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const std::string rows = noise(100'000);
  const MadeBundle made =
      make_bundle(dir / "env",
                  {.name = "env",
                   .items = {wheel_item({.files = {{"demo/__init__.py", "import base\nANSWER = base.VALUE + 1\n"}},
                                         .extra_metadata = "Requires-Dist: base_lib\n"}),
                             wheel_item({.name = "base_lib", .files = {{"base/__init__.py", "VALUE = 41\n"}}}),
                             {.path = "files/data/a b/rows.jsonl", .bytes = rows, .into = "data/a b/rows.jsonl"}}},
                  key);
  ServerProcess child(serve({made.folder, "--fingerprint", made.fingerprint()}), dir / "log");
  const std::string host = "http://127.0.0.1:" + std::to_string(port_of(child.line()));
  const std::string try_it = "import demo; print(demo.ANSWER)";
  const char* named = std::getenv("SEALIFT_UV");
  const std::string uv = named != nullptr ? named : SEALIFT_UV_BESIDE;
  const std::vector<std::string> pip = {
      "/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-cache-dir"};
  std::vector<std::vector<std::string>> clients;
  if (run({"/usr/bin/python3", "-m", "pip", "--version"}).status == 0) clients.push_back(pip);
  if (fs::exists(uv))
    clients.push_back(
        {uv, "pip", "install", "--no-config", "--no-cache", "--no-python-downloads", "--python", "/usr/bin/python3"});
  if (clients.size() < 2) sealift::test::left_out("pip or uv");
  int number = 0;
  for (const std::vector<std::string>& client : clients)
    for (const std::string view : {"", "/c/test", "/b/env-1"}) {
      const std::string url = host + view;
      const bool links = number % 2 == 0;
      std::vector<std::string> command = client;
      const std::string site = dir / ("site" + std::to_string(number++));
      if (links)
        command.insert(command.end(), {"--no-index", "--find-links", url + "/wheels/", "--target", site, "demo"});
      else
        command.insert(command.end(), {"--no-deps", client[0] == uv ? "--default-index" : "--index-url",
                                       url + "/simple/", "--target", site, "-r", url + "/wheels/requirements.txt"});
      const Ran ran = run(command);
      INFO(ran.output << ran.errors);
      CHECK(ran.status == 0);
      CHECK(run({"env", "PYTHONPATH=" + site, "/usr/bin/python3", "-c", try_it}).output == "42\n");
    }
  const std::string script = "set -e; cd " + dir.path().string() + "; mkdir copy; cd copy; curl -sSf " + host +
                             "/b/env-1/entries/env/SHA256SUMS > SUMS; cut -c67- SUMS | while read -r path; do mkdir -p "
                             "\"$(dirname \"$path\")\"; "
                             "curl -sSf -o \"$path\" \"" +
                             host +
                             "/entries/env/$(printf %s \"$path\" | sed 's/ /%20/g')\"; done; "
                             "sha256sum --strict -c SUMS >&2; wc -l < SUMS";
  const Ran taken = run({"sh", "-c", script});
  INFO(taken.output << taken.errors);
  CHECK(taken.status == 0);
  CHECK(taken.output == "3\n");
  CHECK(read_file(dir / "copy/files/data/a b/rows.jsonl") == rows);
  if (run({"wget", "--version"}).status != 0) return sealift::test::left_out("wget");
  const Ran mirror = run({"wget", "-q", "-m", "-nH", "-P", dir / "mirror", host + "/entries/"});
  INFO(mirror.errors);
  CHECK(mirror.status == 0);
  CHECK(read_file(dir / "mirror/entries/env/files/data/a b/rows.jsonl") == rows);
  CHECK(run({"sh", "-c", "cd '" + (dir / "mirror/entries/env").string() + "' && sha256sum --strict -c SHA256SUMS"})
            .status == 0);
}

namespace {

// Runs a script of this folder against a server of one package, in a folder of its own: SCRIPT ADDRESS + `below`
// PACKAGE FOLDER.
Ran mirrored(const std::string& script, const std::string& below) {
  const TempDir dir;
  const MadeBundle made = make_bundle(
      dir / "env", {.name = "env", .items = {wheel_item({.files = {{"demo/__init__.py", "ANSWER = 42\n"}}})}});
  ServerProcess child(serve({made.folder, "--fingerprint", made.fingerprint()}), dir / "log");
  const std::string address = "http://127.0.0.1:" + std::to_string(port_of(child.line()));
  return run({(fs::path(SEALIFT_MIRRORS_TEST).parent_path() / script).string(), address + below, "demo", dir.path()});
}

}  // namespace

TEST_CASE("slow: devpi mirrors the index, and pip installs from devpi" *
          doctest::skip(std::getenv("SEALIFT_TEST_SLOW") == nullptr)) {
  const Ran ran = mirrored("mirrors_test.py", "/simple/");
  INFO(ran.output << ran.errors);
  CHECK(ran.output == "good\n");
}

TEST_CASE("slow: Pulp pulls from the repository by both of its policies, and pip installs from Pulp" *
          doctest::skip(std::getenv("SEALIFT_TEST_SLOW") == nullptr)) {
  const Ran ran = mirrored("pulp_test.py", "/");
  if (ran.status == 77) return sealift::test::left_out(ran.output);
  INFO(ran.output << ran.errors);
  CHECK(ran.output == "good\n");
}
