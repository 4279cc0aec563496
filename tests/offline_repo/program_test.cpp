// SPDX-License-Identifier: Apache-2.0
// The real program as an operator runs it: its words and exit codes, an empty chroot, and the real pip and uv.
#include <algorithm>

#include "offline_repo/server/descriptors.hpp"
#include "tests/offline_repo/raw_client.hpp"
#include "tests/offline_repo/server_process.hpp"
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
  const Ran conflict = run(serve({two.demo.folder, changed.folder, "--fingerprint", two.demo.fingerprint()}));
  CHECK(conflict.status == 10);
  CHECK(conflict.errors.find("demo-1 in ") != std::string::npos);
  CHECK(conflict.errors.find("changed-1 in ") != std::string::npos);
}

TEST_CASE("the program runs in an empty chroot") {
#ifdef SEALIFT_REPO_STATIC
  const bool is_static = true;
#else
  const bool is_static = false;
#endif
  if (::geteuid() != 0 || !is_static) {
    MESSAGE("left out: needs root and the static program");
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

TEST_CASE("pip installs a package and what it needs from two bundles") {
  if (run({"/usr/bin/python3", "-m", "pip", "--version"}).status != 0) {
    MESSAGE("left out: this machine has no pip");
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
  CHECK(run({"/usr/bin/python3", "-m", "pip", "--isolated", "install", "--no-cache-dir", "--index-url", index,
             "--target", dir / "none", "absent"})
            .status == 1);
}

TEST_CASE("uv installs a package and what it needs from two bundles") {
  const char* named = std::getenv("SEALIFT_UV");
  const std::string uv = named != nullptr ? named : SEALIFT_UV_BESIDE;
  if (!fs::exists(uv)) {
    MESSAGE("left out: set SEALIFT_UV to the uv program");
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
