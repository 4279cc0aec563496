// SPDX-License-Identifier: Apache-2.0
// The real program as an operator runs it: its words and exit codes, an empty chroot, and the real pip and uv.
#include <algorithm>
#include <fstream>

#include "bundle/core/json.hpp"
#include "offline_repo/server/descriptors.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/raw_client.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/offline_repo/token_file.hpp"
#include "tests/offline_repo/watched_site.hpp"
#include "tests/support/await.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// demo needs base, and base lies in another bundle.
struct TwoBundles {
  explicit TwoBundles(const TempDir& dir)
      : demo(make_bundle(
            dir / "demo",
            {.name = "demo",
             .items = {wheel_item({.files = {{"demo/__init__.py", "import base\nANSWER = base.VALUE + 1\n"}},
                                   .entry_points = "[console_scripts]\ndemo = demo:main\n",
                                   .extra_metadata = "Requires-Python: >=3.6\nRequires-Dist: base_lib\n"})}},
            key)),
        base(make_bundle(dir / "base",
                         {.name = "base",
                          .items = {wheel_item({.name = "base_lib", .files = {{"base/__init__.py", "VALUE = 41\n"}}})}},
                         key)) {}

  PrivateKey key = PrivateKey::generate();
  MadeBundle demo, base;
};

// An address of its own for every 48 clients, since one has at most 64 connections.
std::unique_ptr<RawClient> client_number(std::size_t number, std::uint16_t port) {
  return std::make_unique<RawClient>(port, 0x7f010001u + static_cast<std::uint32_t>(number / 48));
}

constexpr char kTry[] = "import demo; print(demo.ANSWER)";

}  // namespace

TEST_CASE("the program serves bundles, logs requests and ends well on SIGTERM and SIGINT") {
  const TempDir dir;
  const TwoBundles two(dir);
  for (const int number : {SIGTERM, SIGINT}) {
    const fs::path log = dir / ("log" + std::to_string(number));
    ServerProcess child(serve({two.demo.folder, two.base.seal(), "--fingerprint", two.demo.fingerprint()}), log);
    const std::uint16_t port = port_of(child.line());
    CHECK(fetch(port, "/simple/base-lib/").status == 200);
    child.send(number);
    CHECK(child.wait() == 0);
    CHECK(child.rest().empty());
    CHECK(read_file(log).find("GET /simple/base-lib/ 200") != std::string::npos);
  }
}

TEST_CASE("--quiet leaves only what went wrong on stderr") {
  const TempDir dir;
  const TwoBundles two(dir);
  ServerProcess child(serve({two.demo.folder, "--quiet", "--threads", "3", "--fingerprint", two.demo.fingerprint()}),
                      dir / "log");
  CHECK(fetch(port_of(child.line()), "/").status == 200);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK(read_file(dir / "log").empty());
}

TEST_CASE("what goes wrong at start has its own exit code and words") {
  const TempDir dir;
  const TwoBundles two(dir);
  const std::string other = "sha256:" + std::string(64, '0');
  const Ran untrusted = run(serve({two.demo.folder, "--fingerprint", other}));
  CHECK(untrusted.status == 6);
  CHECK(untrusted.errors.starts_with("error[signature]: "));
  CHECK(untrusted.output.empty());
  CHECK(run(serve({dir / "absent", "--fingerprint", other})).status == 7);
  CHECK(run(serve({two.demo.folder})).status == 6);
  CHECK(run(serve({two.demo.folder, "--fingerprint", "abc"})).status == 2);
  CHECK(run(serve({two.demo.folder, "--fingerprint", other, "--threads", "0"})).status == 2);
  CHECK(run({SEALIFT_REPO_PROGRAM}).status == 2);
  CHECK(
      run({SEALIFT_REPO_PROGRAM, "serve", two.demo.folder, "--fingerprint", other, "--listen", "localhost:1"}).status ==
      2);
  CHECK(run({SEALIFT_REPO_PROGRAM, "--help"}).status == 0);
  CHECK(run({SEALIFT_REPO_PROGRAM, "--version"}).output.starts_with("sealift-repo 0."));
  const MadeBundle changed = make_bundle(
      dir / "changed", {.name = "changed", .items = {wheel_item({.files = {{"demo/__init__.py", "\n"}}})}}, two.key);
  CHECK(run(serve({changed.folder, "--tokens", dir / "none", "--fingerprint", two.demo.fingerprint()})).status == 7);
}

TEST_CASE("a bundle that is no good, and two that disagree about a file, take out only themselves, and it is said") {
  const TempDir dir;
  const TwoBundles two(dir);
  const MadeBundle changed = make_bundle(
      dir / "changed", {.name = "changed", .items = {wheel_item({.files = {{"demo/__init__.py", "\n"}}})}}, two.key);
  ServerProcess child(serve({two.demo.folder, changed.folder, dir / "absent", two.base.folder, "--fingerprint",
                             two.demo.fingerprint()}),
                      dir / "log");
  const std::uint16_t port = port_of(child.line());
  CHECK(fetch(port, "/simple/demo/").status == 404);
  CHECK(fetch(port, "/simple/base-lib/").status == 200);
  CHECK(fetch(port, "/c/test/simple/base-lib/").status == 200);
  const std::string one = fetch(port, "/b/demo-1/simple/demo/").body,
                    other = fetch(port, "/b/changed-1/simple/demo/").body;
  CHECK(one.find("#sha256=") != std::string::npos);
  CHECK(other.find("#sha256=") != std::string::npos);
  CHECK(one != other);
  const RawResponse health = fetch(port, "/healthz");
  CHECK(health.status == 200);
  CHECK(health.body.starts_with("good\nleft out: absent: "));
  CHECK(health.body.find("left out: /: demo-1 is left out: it has other bytes than changed-1") != std::string::npos);
  const std::string metrics = fetch(port, "/metrics").body;
  CHECK(metrics.find("sealift_bundle_left_out{place=\"" + (dir / "absent").string()) != std::string::npos);
  CHECK(metrics.find("\nsealift_views_left_out 4\n") != std::string::npos);  // two bundles, in / and in /c/test/
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  const std::string log = read_file(dir / "log");
  CHECK(log.find("absent in " + (dir / "absent").string() + " is left out: ") != std::string::npos);
  CHECK(log.find("/: changed-1 is left out: it has other bytes than demo-1") != std::string::npos);
}

TEST_CASE(
    "a removed newest version is told by remove, health, metrics, status and page, and their line brings it back") {
  WatchedSite site;
  const MadeBundle first = site.make("env", 1, "prod", "1"), second = site.make("env", 2, "prod", "2");
  for (const MadeBundle* made : {&first, &second}) site.verb({"add", site.folder, made->folder});
  site.await_status("current\tprod\tenv-2\t");
  const Ran older = run({SEALIFT_REPO_PROGRAM, "remove", "--json", site.folder, "env-2"});
  CHECK(older.status == 0);
  CHECK(parse_json(older.output, "remove")["was_current"] == true);
  CHECK(parse_json(older.output, "remove")["kept"] == Json::array({"env-1"}));
  const std::string line = "sealift-repo switch " + site.folder.string() + " env-1";
  CHECK(parse_json(older.output, "remove")["then"].get<std::string>().ends_with("kept: env-1. Next: " + line));
  site.child->send(SIGHUP);
  site.await_status("gap: prod/env: no version is current: ");
  CHECK(fetch(site.port, "/simple/env/").status == 404);
  const RawResponse health = fetch(site.admin, "/healthz");
  CHECK(health.status == 200);
  CHECK(health.body.starts_with("good, with gaps\ngap: prod/env: no version is current: "));
  CHECK(health.body.find("; kept: env-1; next: " + line + "\n") != std::string::npos);
  const std::string metrics = fetch(site.admin, "/metrics").body, page = fetch(site.port, "/").body;
  CHECK(metrics.find("\nsealift_gaps 1\n") != std::string::npos);
  CHECK(metrics.find("sealift_gap{channel=\"prod\",name=\"env\",what=") != std::string::npos);
  CHECK(page.find(line) != std::string::npos);
  CHECK(page.find("<a href=\"b/env-1/\"><bdi>env-1</bdi></a>") != std::string::npos);
  site.verb({"switch", site.folder, "env-1"});
  site.await_status("current\tprod\tenv-1\t");
  CHECK(fetch(site.admin, "/healthz").body == "good\n");
  CHECK(site.lists("/simple/env/", first));
  const Ran last = run({SEALIFT_REPO_PROGRAM, "remove", site.folder, "env-1"});
  CHECK(last.output.find("no version of prod/env is left here") != std::string::npos);
}

TEST_CASE("remove says which delta loses files with the bundle, and its line brings them back") {
  WatchedSite site;
  const TinyItem shared = wheel_item({.name = "kit"});
  TinyItem left_out = shared;
  left_out.absent = true;
  const MadeBundle whole = make_bundle(site.dir / "1", {.name = "env", .items = {shared}}, site.key),
                   delta = make_bundle(site.dir / "2", {.name = "env", .version = 2, .items = {left_out}}, site.key);
  for (const MadeBundle* made : {&whole, &delta}) site.verb({"add", site.folder, made->folder});
  site.await_status("current\ttest\tenv-2\t");
  CHECK(site.lists("/simple/kit/", whole));
  const Ran removed = run({SEALIFT_REPO_PROGRAM, "remove", site.folder, "env-1"});
  CHECK(removed.status == 0);
  const std::string line = "sealift-repo add " + site.folder.string() + " " + fs::canonical(whole.folder).string();
  CHECK(removed.output.find("env-2 is a delta, and no bundle here carries 1 of the files that it leaves out any more, "
                            "such as wheels/kit-1.0-py3-none-any.whl: they are not served. Next: " +
                            line + "\n") != std::string::npos);
  site.child->send(SIGHUP);
  site.await_status("gap: test/env: env-2 is a delta");
  CHECK(fetch(site.port, "/simple/kit/").status == 404);
  site.verb({"add", site.folder, whole.folder});  // the line
  site.await_no_status("gap: ");
  CHECK(site.lists("/simple/kit/", whole));
  CHECK(run({SEALIFT_REPO_PROGRAM, "remove", site.folder, "env-2"}).output.find("is a delta") == std::string::npos);
}

TEST_CASE("bundles come, go and are switched under clients that download, by the program's own verbs") {
  WatchedSite site;
  CHECK(fetch(site.admin, "/healthz").status == 503);
  CHECK(fetch(site.admin, "/healthz").body == "no bundle is served\n");
  const MadeBundle first = site.make("env", 1, "prod", noise(12'000'000)), second = site.make("env", 2, "prod", "2");
  site.verb({"add", site.folder, first.folder});
  site.await_status("current\tprod\tenv-1\t");
  CHECK(fetch(site.admin, "/healthz").body == "good\n");
  RawClient slow(site.port);
  slow.send(request_text(site.file_of(first)));
  slow.await_answer();
  site.verb({"add", site.folder, second.folder});
  site.await_status("current\tprod\tenv-2\t");
  CHECK(site.status().output.find("kept\tprod\tenv-1\t") != std::string::npos);
  CHECK_FALSE(site.lists("/simple/env/", first));
  CHECK(site.lists("/simple/env/", second));
  CHECK(site.lists("/b/env-1/simple/env/", first));
  CHECK(fetch(site.port, site.file_of(second)).status == 200);
  CHECK(fetch(site.port, site.file_of(first)).complete);  // for who read the index a moment ago
  const RawResponse old = slow.receive();
  CHECK(old.complete);
  CHECK(sha256(as_bytes(old.body)) == first.manifest.entries.front().sha256);
  CHECK(site.lists("/c/prod/simple/env/", second));
  CHECK(fetch(site.port, "/c/prod").headers.at("location") == "prod/");
  CHECK(fetch(site.port, "/c/dev/simple/").status == 404);
  CHECK(fetch(site.port, "/c/prod/metrics").status == 404);
  CHECK(fetch(site.port, "/status").status == 404);
  CHECK(fetch(site.admin, "/metrics").body.find("channel=\"prod\",state=\"kept\"} 1\n") != std::string::npos);
  site.verb({"switch", site.folder, "env-1"});
  site.await_status("current\tprod\tenv-1\t");
  CHECK(site.lists("/simple/env/", first));
  CHECK_FALSE(site.lists("/simple/env/", second));
  const MadeBundle bad = site.make("bad", 1, "prod", "bad");
  fs::resize_file(bad.volume(0), 10);
  site.verb({"add", site.folder, bad.folder});
  site.await_status("left_out\t-\tbad-1\t");
  CHECK(fetch(site.admin, "/healthz").status == 200);
  CHECK(fetch(site.admin, "/healthz").body.starts_with("good\nleft out: bad-1: "));
  site.verb({"switch", site.folder, "env-1", "--newest"});
  site.await_status("current\tprod\tenv-2\t");
  fs::remove(site.folder / "env-2");  // by hand, and nobody rings
  site.await_no_status("current\t");
  CHECK(site.status().output.find("the bundle is older than one that this site has accepted") != std::string::npos);
  CHECK(fetch(site.port, site.file_of(second)).status == 404);
  CHECK(run({SEALIFT_REPO_PROGRAM, "status", "127.0.0.1:" + std::to_string(site.port)}).status == 12);
  site.child->send(SIGTERM);
  CHECK(site.child->wait() == 0);
  CHECK(run({SEALIFT_REPO_PROGRAM, "status", "127.0.0.1:" + std::to_string(site.admin)}).status == 12);
  const std::string log = read_file(site.dir / "log");
  CHECK(log.find("env-2 in " + (site.folder / "env-2").string() + " is served") != std::string::npos);
  CHECK(log.find(" is kept, at b/env-1/ alone: env-2 is served") != std::string::npos);
}

TEST_CASE("the program runs in an empty chroot") {
#ifdef SEALIFT_REPO_STATIC
  const bool is_static = true;
#else
  const bool is_static = false;
#endif
  if (::geteuid() != 0 || !is_static) {
    sealift::test::left_out("needs root and the static program");
    return;
  }
  const TempDir dir;
  const TwoBundles two(dir);
  const fs::path root = dir / "root";
  fs::create_directories(root);
  fs::rename(two.demo.folder, root / "bundle");
  fs::copy_file(SEALIFT_REPO_PROGRAM, root / "sealift-repo");
  ServerProcess child({"chroot", root.string(), "/sealift-repo", "serve", "/bundle", "--listen", "127.0.0.1:0",
                       "--fingerprint", two.demo.fingerprint()},
                      dir / "log");
  const std::uint16_t port = port_of(child.line());
  CHECK(fetch(port, "/simple/demo/").status == 200);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
}

TEST_CASE("ten thousand idle connections are held while two thousand clients ask at once, and none fails") {
  const std::size_t limit =
      sealift::offline_repo::raise_descriptor_limit();  // of this test and, inherited, of the server
  const std::size_t asking = std::min<std::size_t>(2000, limit / 8), idle = std::min<std::size_t>(10'000, limit / 2);
  const TempDir dir;
  const TwoBundles two(dir);
  ServerProcess child(serve({two.demo.folder, "--quiet", "--fingerprint", two.demo.fingerprint()}), dir / "log");
  const std::uint16_t port = port_of(child.line());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (std::size_t i = 0; i < idle + asking; ++i) clients.push_back(client_number(i, port));
  for (std::size_t i = idle; i < clients.size(); ++i) clients[i]->send(request_text("/simple/demo/"));
  std::size_t answered = 0, held = 0;
  for (std::size_t i = idle; i < clients.size(); ++i) answered += clients[i]->receive().status == 200 ? 1 : 0;
  CHECK(answered == asking);
  for (std::size_t i = 0; i < idle; i += 100) clients[i]->send(request_text("/simple/"));
  for (std::size_t i = 0; i < idle; i += 100) held += clients[i]->receive().status == 200 ? 1 : 0;
  if (limit >= 19'000) CHECK(held == idle / 100);  // with fewer descriptors the server ends idle ones
  MESSAGE(idle << " idle, " << asking << " asking");
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK(read_file(dir / "log").empty());
}

TEST_CASE("with few descriptors there are fewer connections, and idle ones make room for those who ask") {
  const TempDir dir;
  const TwoBundles two(dir);
  std::vector<std::string> command = {"sh", "-c", "ulimit -n 60; exec \"$0\" \"$@\""};
  for (const std::string& word : serve({two.demo.folder, "--max-connections", "5000", "--cache", "1",
                                        "--connections-per-client", "5000", "--fingerprint", two.demo.fingerprint()}))
    command.push_back(word);
  ServerProcess child(command, dir / "log");
  const std::uint16_t port = port_of(child.line());
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(std::make_unique<RawClient>(port));
  for (int i = 0; i < 20; ++i) CHECK(fetch(port, "/simple/").status == 200);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  const std::string log = read_file(dir / "log");
  CHECK(log.find("warning: 16 connections at most, for the limit of 60 open files") != std::string::npos);
  CHECK(log.find(" to 16 connections; read only") != std::string::npos);
}

TEST_CASE("connections and memory files share the descriptors that there are") {
  using sealift::offline_repo::ServerOptions, sealift::offline_repo::within_descriptors;
  const ServerOptions many = within_descriptors(ServerOptions{}, 1'000'000, 50);
  CHECK(many.max_connections == ServerOptions{}.max_connections);
  CHECK(many.cache_files == ServerOptions{}.cache_files);
  const ServerOptions some = within_descriptors(ServerOptions{}, 1024, 50);
  CHECK(some.cache_files == 256);
  CHECK(some.max_connections == 1024 - 256 - 50);
  CHECK(within_descriptors(ServerOptions{}, 10, 50).max_connections == 16);
  CHECK(within_descriptors({.max_connections = 7}, 1024, 50).max_connections == 7);
}

TEST_CASE("a file that has rotted is found by the scrub, taken out, and served again from a mended copy") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const MadeBundle made =
      make_bundle(dir / "env",
                  {.name = "env",
                   .items = {wheel_item({.name = "apple", .files = {{"apple/__init__.py", noise(40'000)}}}),
                             wheel_item({.name = "zebra"})}},
                  key);
  ServerProcess child(serve({made.folder, "--fingerprint", made.fingerprint(), "--poll", "1", "--scrub", "1000"}),
                      dir / "log");
  const std::uint16_t port = port_of(child.line());
  CHECK(fetch(port, "/simple/apple/").status == 200);
  const std::string good = read_file(made.volume(0));
  std::fstream(made.volume(0), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(made.manifest.entries.front().offset + 20'000))
      .write("\0\1\2\3", 4);
  await("404 for the rotten wheel's page", [&] { return fetch(port, "/simple/apple/").status == 404; });
  CHECK(fetch(port, "/simple/zebra/").status == 200);
  const RawResponse health = fetch(port, "/healthz");
  CHECK(health.status == 200);
  CHECK(health.body.find("wheels/apple-1.0-py3-none-any.whl is not served") != std::string::npos);
  CHECK(fetch(port, "/metrics").body.find("sealift_scrub_failures_total 0\n") == std::string::npos);
  write_file(made.volume(0), good);
  await("good health", [&] { return fetch(port, "/healthz").body == "good\n"; });
  CHECK(fetch(port, "/simple/apple/").status == 200);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK(read_file(dir / "log").find("apple-1.0-py3-none-any.whl is not served") != std::string::npos);
}

TEST_CASE("pip installs a package and what it needs from two bundles") {
  if (run({"/usr/bin/python3", "-m", "pip", "--version"}).status != 0) {
    sealift::test::left_out("this machine has no pip");
    return;
  }
  const TempDir dir;
  const TwoBundles two(dir);
  ServerProcess child(serve({two.demo.folder, two.base.folder, "--fingerprint", two.demo.fingerprint()}), dir / "log");
  const std::string index = "http://127.0.0.1:" + std::to_string(port_of(child.line())) + "/simple/";
  const Ran pip = run({"/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "install",
                       "--no-cache-dir", "--index-url", index, "--target", dir / "site", "demo"});
  INFO(pip.output << pip.errors);
  CHECK(pip.status == 0);
  CHECK(run({"env", "PYTHONPATH=" + (dir / "site").string(), "/usr/bin/python3", "-c", kTry}).output == "42\n");
  CHECK(fs::exists(dir / "site" / "bin" / "demo"));
  const Ran versions = run({"/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "index",
                            "--index-url", index, "versions", "demo"});
  INFO(versions.errors);
  CHECK(versions.output.find("demo (1.0)\nAvailable versions: 1.0\n") == 0);
  CHECK(run({"/usr/bin/python3", "-m", "pip", "--isolated", "install", "--no-cache-dir", "--index-url", index,
             "--target", dir / "none", "absent"})
            .status == 1);
}

TEST_CASE("uv installs a package and what it needs from two bundles") {
  const char* named = std::getenv("SEALIFT_UV");
  const std::string uv = named != nullptr ? named : SEALIFT_UV_BESIDE;
  if (!fs::exists(uv)) {
    sealift::test::left_out("set SEALIFT_UV to the uv program");
    return;
  }
  const TempDir dir;
  const TwoBundles two(dir);
  ServerProcess child(serve({two.demo.folder, two.base.folder, "--fingerprint", two.demo.fingerprint()}), dir / "log");
  const std::string index = "http://127.0.0.1:" + std::to_string(port_of(child.line())) + "/simple/";
  const Ran ran = run({uv, "pip", "install", "--no-config", "--no-cache", "--no-python-downloads", "--python",
                       "/usr/bin/python3", "--default-index", index, "--target", dir / "site", "demo"});
  INFO(ran.output << ran.errors);
  CHECK(ran.status == 0);
  CHECK(run({"env", "PYTHONPATH=" + (dir / "site").string(), "/usr/bin/python3", "-c", kTry}).output == "42\n");
  const std::string log = read_file(dir / "log");
  CHECK(log.find(".whl.metadata 200") != std::string::npos);
  // The bundles were made on 2026-01-01, and so were their wheels as far as this index knows.
  for (const auto& [day, status] : {std::pair{"2026-01-02", 0}, {"2025-12-31", 1}}) {
    const Ran dated =
        run({uv, "pip", "install", "--no-config", "--no-cache", "--no-python-downloads", "--python", "/usr/bin/python3",
             "--default-index", index, "--target", dir / day, "--exclude-newer", day, "demo"});
    INFO(dated.output << dated.errors);
    CHECK(dated.status == status);
  }
}

TEST_CASE("a token for one bundle sees nothing of another one, and SIGHUP reads the tokens again") {
  const TempDir dir;
  const TwoBundles two(dir);
  const fs::path tokens = dir / "tokens", audit = dir / "audit";
  write_tokens(tokens, "# who may fetch\n" + token_line("everybody", "all") +
                           token_line("alice", "a-secret", "bundle:base") +
                           token_line("bob", "b-secret", "bundle:demo-1 channel:none"));
  ServerProcess child(serve({two.demo.folder, two.base.folder, "--fingerprint", two.demo.fingerprint(), "--tokens",
                             tokens, "--audit-log", audit, "--contact", "the platform team, room 4.12"}),
                      dir / "log");
  const std::uint16_t port = port_of(child.line());
  const RawResponse none = fetch(port, "/simple/");
  CHECK(none.status == 401);
  CHECK(none.body.find("who gives one: the platform team, room 4.12") != std::string::npos);
  CHECK(none.headers.at("www-authenticate") == "Basic realm=\"sealift-repo\", charset=\"UTF-8\"");
  CHECK(fetch(port, "/simple/", bearer("wrong")).status == 401);
  CHECK(fetch(port, "/healthz").status == 200);
  CHECK(fetch(port, "/simple/demo/", bearer("all")).status == 200);
  CHECK(fetch(port, "/simple/demo/", bearer("b-secret")).status == 200);
  CHECK(fetch(port, "/simple/demo/", bearer("a-secret")).status == 404);
  CHECK(fetch(port, "/simple/base-lib/", bearer("a-secret")).status == 200);
  CHECK(fetch(port, "/simple/", bearer("a-secret")).body.find("demo") == std::string::npos);
  CHECK(fetch(port, "/", bearer("a-secret")).body.find("demo") == std::string::npos);
  const std::vector<Entry>& entries = two.demo.manifest.entries;
  const Entry& wheel =
      *std::find_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.kind == EntryKind::Wheel; });
  const std::string file = "/files/" + wheel.sha256.hex() + wheel.path.text().substr(wheel.path.text().rfind('/'));
  CHECK(fetch(port, file, bearer("b-secret")).status == 200);
  CHECK(fetch(port, file, bearer("a-secret")).status == 404);
  CHECK(fetch(port, file + ".metadata", bearer("a-secret")).status == 404);
  CHECK(fetch(port, file).status == 401);
  const std::string post = "Content-Length: 5\r\n";
  CHECK(fetch(port, "/api/models/org/tiny/paths-info/main", post, "POST").status == 401);
  {
    RawClient client(port);  // one connection, two clients: as a proxy sends them
    client.send(request_text("/simple/demo/", bearer("b-secret")));
    CHECK(client.receive().status == 200);
    client.send(request_text("/simple/demo/"));
    CHECK(client.receive().status == 401);
  }
  write_tokens(tokens, "broken\n");
  child.send(SIGHUP);
  await("a line about the tokens",
        [&] { return read_file(dir / "log").find("the tokens stay as they were") != std::string::npos; });
  CHECK(fetch(port, "/simple/", bearer("a-secret")).status == 200);
  write_tokens(tokens, token_line("alice", "new", "bundle:base"));
  child.send(SIGHUP);
  await("200 for the new token", [&] { return fetch(port, "/simple/", bearer("new")).status == 200; });
  CHECK(fetch(port, "/simple/", bearer("a-secret")).status == 401);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK(read_file(audit).find("\"user\":\"bob\"") != std::string::npos);
  CHECK((read_file(audit) + read_file(dir / "log")).find("-secret") == std::string::npos);
  for (const fs::perms open : {fs::perms::others_read, fs::perms::others_write, fs::perms::group_write}) {
    write_tokens(tokens, token_line("alice", "new"));
    fs::permissions(tokens, open, fs::perm_options::add);
    const Ran refused = run(serve({two.demo.folder, "--fingerprint", two.demo.fingerprint(), "--tokens", tokens}));
    CHECK(refused.status == 2);
    CHECK(refused.errors.find("chmod 640 ") != std::string::npos);
  }
}

TEST_CASE("a token for one channel sees that channel alone, at every address") {
  const TempDir dir;
  const PrivateKey key = PrivateKey::generate();
  const auto make = [&](const std::string& name, const std::string& channel) {
    return make_bundle(dir / name, {.name = name, .channel = channel, .items = {wheel_item({.name = name})}}, key);
  };
  const MadeBundle prod = make("prod_env", "prod"), dev = make("dev_env", "dev");
  write_tokens(dir / "tokens", token_line("carol", "c-secret", "channel:dev") +
                                   token_line("dave", "d-secret", "channel:dev bundle:prod_env-1"));
  ServerProcess child(serve({prod.folder, dev.folder, "--fingerprint", prod.fingerprint(), "--tokens", dir / "tokens"}),
                      dir / "log");
  const std::uint16_t port = port_of(child.line());
  const auto status = [&](const std::string& target, const std::string& token) {
    return fetch(port, target, bearer(token)).status;
  };
  for (const std::string root : {"", "/c/dev", "/b/dev_env-1"}) {
    CAPTURE(root);
    CHECK(status(root + "/simple/dev-env/", "c-secret") == 200);
    CHECK(status(root + "/simple/prod-env/", "c-secret") == 404);
  }
  for (const std::string root : {"/c/prod", "/b/prod_env-1"}) {
    CAPTURE(root);
    CHECK(status(root + "/simple/prod-env/", "c-secret") == 404);
    CHECK(status(root + "/simple/prod-env/", "d-secret") == 200);
    CHECK(status(root + "/simple/dev-env/", "d-secret") == 404);
    CHECK(fetch(port, root + "/simple/prod-env/").status == 401);
    CHECK(fetch(port, root).status == 401);
  }
  CHECK(status("/simple/prod-env/", "d-secret") == 200);
}

TEST_CASE("pip and uv send a token from the address and from netrc") {
  const char* named = std::getenv("SEALIFT_UV");
  const std::string uv = named != nullptr ? named : SEALIFT_UV_BESIDE;
  const bool has_pip = run({"/usr/bin/python3", "-m", "pip", "--version"}).status == 0, has_uv = fs::exists(uv);
  if (!has_pip || !has_uv) sealift::test::left_out((has_pip ? "" : "pip "), (has_uv ? "" : "uv"));
  const TempDir dir;
  const TwoBundles two(dir);
  write_tokens(dir / "tokens", token_line("alice", "a-secret"));
  ServerProcess child(
      serve({two.demo.folder, two.base.folder, "--fingerprint", two.demo.fingerprint(), "--tokens", dir / "tokens"}),
      dir / "log");
  const std::string server = "127.0.0.1:" + std::to_string(port_of(child.line())) + "/c/test/simple/";
  std::ofstream(dir / "netrc") << "machine 127.0.0.1 login any password a-secret\n";
  fs::permissions(dir / "netrc", fs::perms::owner_read | fs::perms::owner_write);
  const std::vector<std::vector<std::string>> clients = {
      has_pip ? std::vector<std::string>{"/usr/bin/python3", "-m", "pip", "--isolated", "--no-input",
                                         "--disable-pip-version-check", "install", "--no-cache-dir", "--index-url"}
              : std::vector<std::string>{},
      has_uv ? std::vector<std::string>{uv, "pip", "install", "--no-config", "--no-cache", "--no-python-downloads",
                                        "--python", "/usr/bin/python3", "--default-index"}
             : std::vector<std::string>{}};
  int number = 0;
  for (const std::vector<std::string>& client : clients) {
    if (client.empty()) continue;
    const auto install = [&](const std::string& netrc, const std::string& index) {
      std::vector<std::string> command = {"env", "NETRC=" + netrc};
      command.insert(command.end(), client.begin(), client.end());
      const std::string site = dir / ("site" + std::to_string(number++));
      command.insert(command.end(), {index, "--target", site, "demo"});
      const Ran ran = run(command);
      INFO(ran.output << ran.errors);
      const bool works = run({"env", "PYTHONPATH=" + site, "/usr/bin/python3", "-c", kTry}).output == "42\n";
      CHECK(works == (ran.status == 0));
      return works;
    };
    CHECK(install("/nowhere", "http://any:a-secret@" + server));
    CHECK(install(dir / "netrc", "http://" + server));
    CHECK_FALSE(install("/nowhere", "http://any:wrong@" + server));
  }
}

TEST_CASE("slow: pip installs over https and HTTP/2 through nginx with the sample's configuration" *
          doctest::skip(std::getenv("SEALIFT_TEST_SLOW") == nullptr)) {
  const TempDir dir;
  const TwoBundles two(dir);
  ServerProcess child(serve({two.demo.folder, two.base.folder, "--fingerprint", two.demo.fingerprint()}), dir / "log");
  const char* path = std::getenv("PATH");
  const Ran ran = run({"env", std::string("PATH=") + (path != nullptr ? path : ""), SEALIFT_NGINX_TEST,
                       std::to_string(port_of(child.line())), "demo"});
  INFO(ran.output << ran.errors);
  if (ran.status == 77)
    MESSAGE(ran.output);
  else
    CHECK(ran.status == 0);
}
