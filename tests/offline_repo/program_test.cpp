// SPDX-License-Identifier: Apache-2.0
// The real program as an operator runs it: its words and exit codes, an empty chroot, and the real pip and uv.
#include <algorithm>

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
}
