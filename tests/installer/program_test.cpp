// SPDX-License-Identifier: Apache-2.0
// The real sealift-install from outside: how it is linked, what it prints, how it exits, what kill -9 leaves.
// What the library does is tested beside; here it is the program on a disk.
#include "tests/installer/program.hpp"
#include "installer/generations/generation.hpp"
#include "tests/support/left_out.hpp"

#include "installer/prefix/prefix_lock.hpp"
#include "sealift/bundle/native/elf.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using bundle::Json;

namespace {

Json parsed(const Outcome& outcome) {
  INFO(outcome.out);
  return bundle::parse_json(outcome.out, "stdout");
}

TinyBundle many_files() {
  TinyBundle tiny{.arch = probe().target.arch, .volume_size = 65536};
  tiny.items.clear();
  for (int i = 0; i < 40; ++i) {
    TinyWheel wheel{.name = "w" + std::to_string(100 + i), .files = {}};
    for (int k = 0; k < 20; ++k)
      wheel.files[wheel.name + "/m" + std::to_string(k) + ".py"] = numbers_text(static_cast<unsigned>(i * 20 + k), 400);
    tiny.items.push_back(wheel_item(wheel));
  }
  return tiny;
}

TinyBundle small() {
  return {.arch = probe().target.arch};
}

}  // namespace

TEST_CASE("the program is fully static: no interpreter, no dynamic section") {
  if (std::string(SEALIFT_SANITIZE) != "") return left_out("needs a program without sanitizers");
  bundle::FileSource source(SEALIFT_INSTALL);
  const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
  REQUIRE(elf);
  CHECK(elf->interpreter.empty());
  CHECK_FALSE(elf->dynamic);
  CHECK(elf->needed.empty());
}

TEST_CASE("what could not be printed is no success, and a fault keeps its own exit code") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", small());
  const std::string prefix = dir / "prefix";
  REQUIRE(run(dir, {"apply", made.folder.string(), "--prefix", prefix, "--fingerprint", made.fingerprint()}).exit == 0);
  const auto full = [] { ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  for (const char* verb : {"inventory", "status", "receipt"}) {
    const Outcome outcome = run(dir, {verb, "--prefix", prefix}, nullptr, full);
    INFO(outcome.err);
    CHECK(outcome.exit == 3);
    CHECK(outcome.err.find("could not be written") != std::string::npos);
  }
  CHECK(run(dir, {"status", "--prefix", dir / "none", "--json"}, nullptr, full).exit == 7);
}

TEST_CASE("work goes on when nobody reads what is said of it, and ends as others do when nobody reads what it prints") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", many_files());
  static constexpr auto kNobody = +[](int stream) {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(97);
    ::close(ends[0]);
    ::dup2(ends[1], stream);
  };
  const auto apply = [&](const std::string& prefix, Preparation prepare) {
    return run(dir, {"apply", made.folder.string(), "--prefix", prefix, "--fingerprint", made.fingerprint()}, nullptr,
               prepare);
  };
  CHECK(apply(dir / "errors", [] { kNobody(STDERR_FILENO); }).exit == 0);
  CHECK(apply(dir / "output", [] { kNobody(STDOUT_FILENO); }).exit == 128 + SIGPIPE);
  CHECK(apply(dir / "ignored", [] {
          ::signal(SIGPIPE, SIG_IGN);
          kNobody(STDOUT_FILENO);
        }).exit == 3);
  for (const char* prefix : {"errors", "output", "ignored"})
    CHECK(run(dir, {"doctor", "--prefix", dir / prefix}).exit == 0);
}

TEST_CASE("a stream that the caller closed gives its number to no file, so that nothing is printed into one") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", many_files());
  const std::string prefix = dir / "prefix";
  const std::vector<std::string> apply = {"apply", made.folder.string(), "--prefix",
                                          prefix,  "--fingerprint",      made.fingerprint()};
  CHECK(run(dir, apply, nullptr, [] {
          for (const int stream : {0, 1, 2}) ::close(stream);
        }).exit == 0);
  const std::string lock = read_file(prefix + "/lock");
  CHECK(std::count(lock.begin(), lock.end(), '\n') == 1);  // who held it
  CHECK(run(dir, {"doctor", "--prefix", prefix}).exit == 0);
}

TEST_CASE("inventory prints what a packer can read, and nothing beside it") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", small());
  const std::string prefix = dir / "prefix";
  REQUIRE(run(dir, {"apply", made.folder.string(), "--prefix", prefix, "--fingerprint", made.fingerprint()}).exit == 0);
  const Outcome outcome = run(dir, {"inventory", "--prefix", prefix});
  CHECK(outcome.exit == 0);
  CHECK(outcome.err.empty());
  const bundle::Inventory inventory = bundle::parse_inventory(outcome.out, "stdout");
  CHECK(inventory.has(made.manifest.entries.at(0)));
  CHECK(inventory.generations.size() == 1);
  CHECK(run(dir, {"inventory", "--prefix", prefix, "--json"}).out == outcome.out);
  CHECK(run(dir, {"inventory", "--prefix", dir / "none"}).exit == 7);
  CHECK(run(dir, {"inventory"}).exit == 2);
}

TEST_CASE("arguments that make no sense end with 2, help and version with 0") {
  const TempDir dir;
  CHECK(run(dir, {}).exit == 2);
  CHECK(run(dir, {"install"}).exit == 2);
  CHECK(run(dir, {"apply", "x"}).exit == 2);
  const Outcome waived = run(dir, {"apply", "x", "--prefix", dir / "p", "--waive", "lib/a.so"});
  CHECK(waived.exit == 2);
  CHECK(waived.err.find("a waiver has no reason") != std::string::npos);
  CHECK(run(dir, {"verify", "x", "--threads", "0"}).exit == 2);
  CHECK(run(dir, {"verify", "x", "--fingerprint", "abc"}).exit == 2);
  CHECK(run(dir, {"verify"}).exit == 2);
  CHECK(run(dir, {"verify", "x", "--volume", "x.vol001", "--deep"}).exit == 2);
  CHECK(run(dir, {"export", "x"}).exit != 0);
  CHECK(run(dir, {"--help"}).exit == 0);
  CHECK(run(dir, {"apply", "--help"}).out.find("--prefix") != std::string::npos);
  CHECK(run(dir, {"--version"}).out.starts_with("sealift-install "));
}

TEST_CASE("verify says which wheels may have files in a package of another one") {
  const TempDir dir;
  TinyBundle tiny = small();
  tiny.items.push_back(wheel_item({.name = "guest", .files = {{"demo/plugins/extra.py", "x"}}}));
  tiny.items.back().shared = {"demo/plugins"};
  const MadeBundle made = make_bundle(dir / "bundle", tiny);
  std::vector<std::string> words = {"verify", made.folder.string(), "--fingerprint", made.fingerprint()};
  CHECK(run(dir, words).out.find("of another one: guest-1.0-py3-none-any.whl: demo/plugins") != std::string::npos);
  words.push_back("--json");
  CHECK(parsed(run(dir, words))["shared"][0] == "guest-1.0-py3-none-any.whl: demo/plugins");
}

TEST_CASE("verify says which wheels were built outside of a sandbox; each verb refuses them if asked") {
  const TempDir dir;
  TinyBundle tiny = small();
  tiny.items[0].build = bundle::WheelBuild::Unsandboxed;
  const MadeBundle made = make_bundle(dir / "bundle", tiny);
  const std::string folder = made.folder, prefix = dir / "prefix";
  const auto asked = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--fingerprint", made.fingerprint()});
    return run(dir, words);
  };
  const Outcome verified = asked({"verify", folder});
  CHECK(verified.exit == 0);
  CHECK(verified.out.find("outside of one: demo-1.0-py3-none-any.whl") != std::string::npos);
  CHECK(verified.err.find("warning: 1 wheel(s) were built outside of a sandbox") != std::string::npos);
  CHECK(parsed(asked({"verify", folder, "--json"}))["built"]["unsandboxed"][0] == "demo-1.0-py3-none-any.whl");
  const std::string only = "--sandboxed-builds-only";
  CHECK(asked({"verify", folder, only}).exit == 10);
  CHECK(asked({"verify", "--volume", made.volume(0), only}).exit == 10);
  CHECK(asked({"export", folder, "--wheels", dir / "out", only}).exit == 10);
  CHECK(asked({"mend", folder, "--into", dir / "mended", only}).exit == 10);
  for (const char* verb : {"plan", "preflight", "apply"})
    CHECK(asked({verb, folder, "--prefix", prefix, only}).exit == 10);
  CHECK_FALSE(fs::exists(dir / "prefix/current"));
  CHECK(asked({"apply", folder, "--prefix", prefix}).exit == 0);
}

TEST_CASE("one volume and plain files: what the program says of them, for people and for machines") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", many_files());
  const std::string second = made.volume(1), out = dir / "out/wheels";
  const std::vector<std::string> verify = {"verify", "--volume", second, "--fingerprint", made.fingerprint(), "--json"};
  const Json good = parsed(run(dir, verify));
  CHECK(good["verified"] == true);
  CHECK(good["number"] == 2);
  CHECK(good["bytes"] == fs::file_size(second));
  flip_bit(second, 8 * 100);
  const Outcome outcome = run(dir, verify);
  CHECK(outcome.exit == 5);
  const Json bad = parsed(outcome)["bad"];
  REQUIRE(bad.size() == 1);
  CHECK(bad[0]["offset"] == 0);
  CHECK(bad[0]["entries"][0].get<std::string>().starts_with("wheels/w1"));
  CHECK(outcome.err.find("of wheels/w1") != std::string::npos);

  const std::vector<std::string> asked = {"export",   made.folder, "--fingerprint", made.fingerprint(),
                                          "--wheels", out,         "--json"};
  const Outcome rotten = run(dir, asked);
  CHECK(rotten.exit == 5);
  CHECK(parsed(rotten)["error"]["code"] == "digest");
  flip_bit(second, 8 * 100);
  const Json exported = parsed(run(dir, asked));
  CHECK(exported["folders"][0]["folder"] == out);
  CHECK(exported["folders"][0]["written"].size() + exported["folders"][0]["there"].size() == 40);
  for (const TinyItem& item : many_files().items) CHECK(read_file(dir / "out" / item.path) == item.bytes);
  CHECK(run(dir, {"export", made.folder, "--fingerprint", made.fingerprint()}).exit == 2);
}

TEST_CASE("from pin to switch: the verbs of a site's first day, with data on stdout only") {
  const Site site;
  const MadeBundle first = site.make(small());
  TinyBundle next = small();
  next.version = 2;
  const MadeBundle second = site.make(next, "bundle2");
  const MadeBundle stranger = make_bundle(site.dir / "stranger", next);
  const std::string prefix = site.prefix().folder();
  const std::vector<std::string> pin = {"trust",    "add", first.folder, "--fingerprint", first.fingerprint(),
                                        "--prefix", prefix};
  CHECK(run(site.dir, {"verify", first.folder, "--prefix", prefix}).exit == 6);
  const Outcome pinned_root = run(site.dir, pin);
  CHECK(pinned_root.exit == 0);
  CHECK(pinned_root.out.starts_with("pinned\n"));
  CHECK(run(site.dir, pin).out.starts_with("already pinned\n"));
  CHECK(parsed(run(site.dir, {"trust", "list", "--prefix", prefix, "--json"}))["pinned"] == first.fingerprint());
  CHECK(run(site.dir, {"verify", stranger.folder, "--prefix", prefix}).exit == 6);
  const Outcome other =
      run(site.dir, {"trust", "add", stranger.folder, "--fingerprint", stranger.fingerprint(), "--prefix", prefix});
  CHECK(other.exit == 10);
  CHECK(other.err.find("trust update") != std::string::npos);

  const Json verified = parsed(run(site.dir, {"verify", first.folder, "--prefix", prefix, "--json"}));
  CHECK(verified["verified"] == true);
  CHECK(verified["signers"][0] == "sha256:" + site.key.public_key().id().hex());
  CHECK(verified["root"]["fingerprint"] == first.fingerprint());
  CHECK(verified["name"] == "tiny");

  const Json plan = parsed(run(site.dir, {"plan", first.folder, "--prefix", prefix, "--json"}));
  CHECK(plan["action"] == "install");
  CHECK(plan["dry_run"] == true);
  CHECK(plan["unpack"].size() == 1);
  CHECK(!fs::exists(site.current()));
  // The same plan under its other name; only the free room may have changed meanwhile.
  const auto without_room = [](Json json) {
    json.erase("free_bytes");
    json.erase("free_inodes");
    return json;
  };
  CHECK(without_room(plan) ==
        without_room(parsed(run(site.dir, {"apply", first.folder, "--prefix", prefix, "--dry-run", "--json"}))));
  const std::string text = run(site.dir, {"plan", first.folder, "--prefix", prefix}).out;
  CHECK(text.find("  new       wheels/demo-1.0-py3-none-any.whl\n") != std::string::npos);
  CHECK(text.find(" inodes at most") != std::string::npos);

  const Outcome applied = run(site.dir, {"apply", first.folder, "--prefix", prefix});
  CHECK(applied.exit == 0);
  CHECK(applied.out.starts_with("installed tiny version 1 as generation 1\n"));
  CHECK(applied.err.find("unpacking") != std::string::npos);
  const Outcome again = run(site.dir, {"apply", first.folder, "--prefix", prefix});
  CHECK(again.exit == 0);
  CHECK(again.out.starts_with("already installed"));
  CHECK(parsed(run(site.dir, {"apply", second.folder, "--prefix", prefix, "--json"}))["generation"] == 2);
  CHECK(run(site.dir, {"switch", "1", "--prefix", prefix}).out.starts_with("generation 1 is current"));
  const Json status = parsed(run(site.dir, {"status", "--prefix", prefix, "--json"}));
  CHECK(status["current"] == 1);
  CHECK(status["generations"].size() == 2);
  CHECK(status["generations"][0]["audit"]["wheels"] == 1);
  CHECK(run(site.dir, {"status", "--prefix", prefix}).out.find("* 0001  tiny version 1") != std::string::npos);

  CHECK(run(site.dir, {"pin", "2", "--prefix", prefix}).out == "generation 2 is pinned\n");
  CHECK(run(site.dir, {"status", "--prefix", prefix}).out.find(", pinned") != std::string::npos);
  CHECK(run(site.dir, {"unpin", "2", "--prefix", prefix}).exit == 0);
  CHECK(run(site.dir, {"switch", "2", "--prefix", prefix}).exit == 0);
  CHECK(run(site.dir, {"gc", "--prefix", prefix, "--keep", "0"}).exit == 2);
  const Outcome planned = run(site.dir, {"gc", "--prefix", prefix, "--keep", "1", "--dry-run"});
  CHECK(planned.out.find("  0002  stays: current\n  0001  goes\nwould remove 1 generation(s)") != std::string::npos);
  const Json removed = parsed(run(site.dir, {"gc", "--prefix", prefix, "--keep", "1", "--json"}));
  CHECK(removed["removed"] == Json::array({1}));
  CHECK(removed["kept"][0]["why"] == "current");
  CHECK(run(site.dir, {"switch", "1", "--prefix", prefix}).exit == 7);

  const Outcome healthy = run(site.dir, {"doctor", "--prefix", prefix});
  CHECK(healthy.exit == 0);
  CHECK(healthy.out.find("healthy: ") == 0);
  const fs::path module = site.site_packages() / "demo/__init__.py";
  fs::permissions(module, fs::perms(0644));
  write_file(module, "ANSWER = 43\n");
  const Outcome sick = run(site.dir, {"doctor", "--prefix", prefix, "--json"});
  CHECK(sick.exit == 5);
  CHECK(parsed(sick)["findings"].size() == 1);
  CHECK(parsed(sick)["findings"][0]["paths"].size() == 2);
  const Outcome cured = run(site.dir, {"doctor", "--prefix", prefix, "--repair", second.folder});
  CHECK(cured.exit == 0);
  CHECK(cured.out.find("put right:\nchanged  store/") == 0);
  CHECK(read_file(module) == "ANSWER = 42\n");
}

TEST_CASE("a refusal is printed for people and, on request, for machines; its code is the exit code") {
  const Site site;
  const MadeBundle made = site.make(small());
  flip_bit(made.volume(0), 4096);
  const Outcome outcome = run(site.dir, {"verify", made.folder, "--fingerprint", made.fingerprint(), "--json"});
  CHECK(outcome.exit == 5);
  CHECK(outcome.err.find("error[digest]: chunk 0 differs") != std::string::npos);
  CHECK(outcome.err.find("\n  where:    ") != std::string::npos);
  CHECK(parsed(outcome)["failures"][0]["code"] == "digest");
  const Outcome apply = run(site.dir, {"apply", made.folder, "--fingerprint", made.fingerprint(), "--prefix",
                                       site.prefix().folder(), "--json"});
  CHECK(apply.exit == 5);
  CHECK(parsed(apply)["error"]["exit"] == 5);
}

TEST_CASE("probe prints TOML, and JSON on request") {
  const TempDir dir;
  CHECK(run(dir, {"probe"}).out.find("\nformat = 1\narch = \"") != std::string::npos);
  CHECK(parsed(run(dir, {"probe", "--json"}))["arch"] == probe().target.arch);
}

TEST_CASE("while another process holds the lock, apply ends with 10 and names it") {
  const Site site;
  Disk disk;
  const MadeBundle made = site.make(small());
  const PrefixLock lock(site.prefix(), disk, "apply");
  const Outcome outcome =
      run(site.dir, {"apply", made.folder, "--fingerprint", made.fingerprint(), "--prefix", site.prefix().folder()});
  CHECK(outcome.exit == 10);
  CHECK(outcome.err.find("process " + std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("kill -9 at any moment leaves current as it was, and the next run finishes the work") {
  const Site site;
  Disk disk;
  bundle::Progress silent(nullptr);
  const MadeBundle old = site.make(small(), "old");
  TinyBundle next = many_files();
  next.version = 2;
  const MadeBundle made = site.make(next);
  const auto arguments = [&](const MadeBundle& bundle) {
    return std::vector<std::string>{"apply",    bundle.folder,          "--fingerprint", bundle.fingerprint(),
                                    "--prefix", site.prefix().folder(), "--threads",     "2"};
  };
  REQUIRE(run(site.dir, arguments(old)).exit == 0);
  const auto began = std::chrono::steady_clock::now();
  REQUIRE(run(site.dir, arguments(made)).exit == 0);
  auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
  int killed = 0, rounds = 0, finished = 0;
  for (int i = 0; killed < 20 && i < 400; ++i, ++rounds) {
    REQUIRE(run(site.dir, {"switch", "1", "--prefix", site.prefix().folder()}).exit == 0);
    for (const unsigned number : generation_numbers(site.prefix()))
      if (number != 1) fs::remove_all(site.prefix().generation(number));
    if (i % 4 == 0)  // sometimes from an empty store, sometimes from what the last one left
      for (const fs::directory_entry& item : fs::directory_iterator(site.prefix().store())) fs::remove_all(item);
    const pid_t child = start(site.dir, arguments(made));
    // A moment spread over the whole run; waiting here is the subject, not a guess at somebody's speed.
    ::usleep(static_cast<useconds_t>(whole.count() * ((i * 7) % 20) / 20));
    ::kill(child, SIGKILL);
    if (finish(site.dir, child).exit == 128 + SIGKILL)
      ++killed;
    else
      whole = whole * 4 / 5;  // it was faster than the run that was timed: that round does not count
    const fs::path target = fs::read_symlink(site.current());
    CHECK((target == "generations/0001" || target == "generations/0002"));
    CHECK(fs::exists(site.current() / "generation.json"));
    for (const fs::directory_entry& item : fs::directory_iterator(site.prefix().store()))
      CHECK(fs::exists(item.path() / "record.json"));  // an item is whole or not there
    finished += run(site.dir, arguments(made)).exit == 0;
    CHECK(fs::read_symlink(site.current()) == "generations/0002");
    CHECK(read_file(site.site_packages() / "w105/m3.py") == numbers_text(103, 400));
    CHECK(!fs::exists(site.prefix().staging()));
  }
  CHECK(finished == rounds);
  CHECK(killed == 20);
}

TEST_CASE("it runs in an empty root, where there is nothing but the program and the bundle") {
  if (::geteuid() != 0 || std::string(SEALIFT_SANITIZE) != "") {
    sealift::test::left_out("chroot needs root and the static program");
    return;
  }
  const Site site;
  const fs::path root = site.dir / "root";
  fs::create_directory(root);
  fs::copy_file(SEALIFT_INSTALL, root / "sealift-install");
  const MadeBundle made = make_bundle(root / "bundle", small());
  const Outcome verified = run(site.dir, {"verify", "/bundle", "--fingerprint", made.fingerprint()}, root.c_str());
  INFO(verified.err);
  CHECK(verified.exit == 0);
  CHECK(verified.out.starts_with("verified tiny version 1"));
  CHECK(run(site.dir, {"probe"}, root.c_str()).out.find("# glibc: no libc.so.6") != std::string::npos);
  const Outcome refused =
      run(site.dir, {"apply", "/bundle", "--fingerprint", made.fingerprint(), "--prefix", "/prefix"}, root.c_str());
  CHECK(refused.exit == 8);
  CHECK(!fs::exists(root / "prefix"));
  fs::create_directories(root / "lib64");
  fs::copy_file(probe().libc, root / "lib64/libc.so.6");
  CHECK(run(site.dir, {"apply", "/bundle", "--fingerprint", made.fingerprint(), "--prefix", "/prefix"}, root.c_str())
            .exit == 0);
  CHECK(fs::exists(root / "prefix/current/lib/python3.11/site-packages/demo/__init__.py"));
}

TEST_CASE("a folder that is no prefix is said to be none, by every verb that asks one, and nothing is left in it") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "other");
  const std::vector<std::vector<std::string>> verbs = {
      {"switch", "3"},        {"pin", "3"}, {"unpin", "3"},      {"status"}, {"receipt"},
      {"venv", dir / "venv"}, {"gc"},       {"gc", "--dry-run"}, {"doctor"}, {"inventory"}};
  for (const std::string place : {"other", "absent"})
    for (std::vector<std::string> words : verbs) {
      words.insert(words.end(), {"--prefix", dir / place});
      const Outcome outcome = run(dir, words);
      INFO(place << ", " << words[0] << ": " << outcome.err << outcome.out);
      CHECK(outcome.exit == 7);
      CHECK(outcome.err.find(place == "other" ? "this folder is no prefix" : "there is no prefix here") !=
            std::string::npos);
      CHECK(outcome.err.find("sealift-install apply BUNDLE --prefix '" + (dir / place).string() + "'") !=
            std::string::npos);
      CHECK(std::filesystem::is_empty(dir / "other"));
      CHECK_FALSE(std::filesystem::exists(dir / "absent"));
    }
  const MadeBundle made = make_bundle(dir / "bundle", small());
  const std::string prefix = dir / "other";  // an empty folder becomes one
  REQUIRE(run(dir, {"apply", made.folder.string(), "--prefix", prefix, "--fingerprint", made.fingerprint()}).exit == 0);
  for (const std::string inside : {"/current", "/generations/0001", "/generations", "/store"}) {
    const Outcome outcome = run(dir, {"switch", "1", "--prefix", prefix + inside});
    INFO(inside << ": " << outcome.err);
    CHECK(outcome.exit == 7);
    CHECK(outcome.err.find("the prefix is the folder above: --prefix '" + prefix + "'") != std::string::npos);
  }
  CHECK(run(dir, {"switch", "1", "--prefix", prefix}).exit == 0);
}
