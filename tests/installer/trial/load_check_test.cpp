// SPDX-License-Identifier: Apache-2.0
// Native files are tried by the host's python3, with libraries that the host's compiler makes; skipped without them.
#include "installer/trial/load_check.hpp"

#include "installer/generations/generation_record.hpp"
#include "sealift/bundle/native/host_libraries.hpp"
#include "tests/installer/made_libraries.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

const SelfCheck::Step* step(const SelfCheck& test, const std::string& name) {
  for (const SelfCheck::Step& step : test.steps)
    if (step.name == name) return &step;
  return nullptr;
}

}  // namespace

TEST_CASE("libraries load each after what it needs, from folders that no search path names, and programs are traced") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  // zbase comes last by name, and neither folder is on a search path.
  const std::string base = shop.library("libzbase.so.1", "int base(void) { return 1; }");
  const std::string user =
      shop.library("libauser.so.1", "int base(void); int user(void) { return base(); }", {"libzbase.so.1"});
  const std::string module = shop.make("_demo.so", "int PyInit__demo(void) { __builtin_trap(); }");
  const std::string program = shop.make("tool", "int main(void) { return 7; }", "");
  const HostSite site;
  const Applied applied =
      site.apply(site.make(bundle_with({{"lib/z/libzbase.so.1", base},
                                        {"lib/a/libauser.so.1", user},
                                        {"lib/python3.11/site-packages/_demo.cpython-311.so", module},
                                        {"share/data.bin",
                                         "\177ELF and then no more than some words of text, "
                                         "long enough to be a header of one"},
                                        {"bin/tool", program}})));
  const SelfCheck& test = applied.record->self_check;
  REQUIRE(step(test, "native files") != nullptr);
  CHECK(step(test, "native files")->passed);
  CHECK(step(test, "native files")->detail == "4 of 4 libraries and programs load");
  CHECK(!step(test, "all-reduce of two ranks")->passed);
  CHECK(step(test, "all-reduce of two ranks")->detail == "the bundle brings no torch");
  CHECK(step(test, "training") == nullptr);
  CHECK(read_generation_record(site.current(), 1).self_check.steps == test.steps);
}

TEST_CASE(
    "a library that takes from others of whoever needs it is good with them, and a static program is no library") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  // As libtorch_nvshmem, which libtorch_cuda needs, takes from libc10_cuda without saying so.
  const std::string taking = shop.library("libtaking.so", "extern int given; int taken(void) { return given; }");
  const std::string giving = shop.library("libgiving.so", "int given = 1;");
  const std::string user = shop.make("libuser.so", "int taken(void); int user(void) { return taken(); }",
                                     "-shared -Wl,--no-as-needed -Wl,-soname,libuser.so '-Wl,-rpath,$ORIGIN'",
                                     {"libtaking.so", "libgiving.so"});
  const std::string program = shop.make("static", "int main(void) { return 0; }", "-static-pie");
  const HostSite site;
  const MadeBundle made = site.make(bundle_with(
      {{"lib/libgiving.so", giving}, {"lib/libtaking.so", taking}, {"lib/libuser.so", user}, {"bin/static", program}}));
  const Applied applied = site.apply(made);
  REQUIRE(step(applied.record->self_check, "native files"));
  CHECK(step(applied.record->self_check, "native files")->detail == "3 of 3 libraries and programs load");
}

TEST_CASE("a program whose library lacks a function that it calls is refused, although it would start") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  shop.library("libmath.so.1", "int old_sum(void) { return 0; } int sum(void) { return 1; }");
  const std::string program =
      shop.make("tool", "int old_sum(void); int main(int n, char** v) { return n > 1 ? old_sum() : 0; }",
                "-Wl,-z,lazy '-Wl,-rpath,$ORIGIN/../lib'", {"libmath.so.1"});
  const std::string optional =
      shop.make("optional",
                "__attribute__((weak)) int new_sum(void); int sum(void); int main(void) { return new_sum ? "
                "new_sum() : sum() - 1; }",
                "-Wl,-z,lazy '-Wl,-rpath,$ORIGIN/../lib'", {"libmath.so.1"});
  const std::string newer = shop.library("libmath.so.1", "int sum(void) { return 1; }");
  const HostSite site;
  const bundle::Error error = refusal([&] {
    site.apply(site.make(bundle_with({{"lib/libmath.so.1", newer}, {"bin/tool", program}})));
  });
  CHECK(error.code() == bundle::ErrorCode::SelfTest);
  CHECK(mentions(error, "bin/tool"));
  CHECK(mentions(error, "undefined symbol: old_sum"));
  const HostSite other;
  const Applied applied =
      other.apply(other.make(bundle_with({{"lib/libmath.so.1", newer}, {"bin/optional", optional}})));
  CHECK(step(applied.record->self_check, "native files")->detail == "2 of 2 libraries and programs load");
}

TEST_CASE("what waits for the GPU's driver is said to, also through another library, and does not pass") {
  if (!host_has_tools()) return;
  if (fs::exists("/usr/lib/x86_64-linux-gnu/libcuda.so.1") || fs::exists("/usr/lib64/libcuda.so.1")) {
    sealift::test::left_out("this machine has the driver");
    return;
  }
  const LibraryShop shop;
  shop.library("libcuda.so.1", "int cuInit(void) { return 0; }");
  const std::string direct =
      shop.library("libgpu.so.1", "int cuInit(void); int gpu(void) { return cuInit(); }", {"libcuda.so.1"});
  const std::string through =
      shop.library("libabove.so.1", "int gpu(void); int above(void) { return gpu(); }", {"libgpu.so.1"});
  const HostSite site;
  const Applied applied =
      site.apply(site.make(bundle_with({{"lib/libgpu.so.1", direct}, {"lib/libabove.so.1", through}})));
  const SelfCheck& test = applied.record->self_check;
  CHECK(step(test, "native files")->detail == "0 of 2 libraries and programs load");
  const SelfCheck::Step* waiting = step(test, "files that need a driver");
  REQUIRE(waiting != nullptr);
  CHECK(!waiting->passed);
  CHECK(waiting->detail.find("lib/libgpu.so.1 (libcuda.so.1") != std::string::npos);
  CHECK(waiting->detail.find("lib/libabove.so.1") != std::string::npos);
}

TEST_CASE(
    "what waits for a library of the machine's own is said to, also through another one, where the bundle says so") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  shop.library("libvendorcl.so", "int begin(void) { return 0; }");
  const std::string direct =
      shop.library("libnpu.so.1", "int begin(void); int npu(void) { return begin(); }", {"libvendorcl.so"});
  const std::string through =
      shop.library("libabove.so.1", "int npu(void); int above(void) { return npu(); }", {"libnpu.so.1"});
  const HostSite site;
  TinyBundle tiny = bundle_with({{"lib/libnpu.so.1", direct}, {"lib/libabove.so.1", through}});
  CHECK_REFUSED(site.apply(site.make(tiny)), SelfTest, "libvendorcl.so");
  const std::string place(bundle::kHostLibrariesPlace);
  tiny.items.push_back(file_item("programs/" + place, "libvendor*.so\n", place, false));
  tiny.version = 2;
  const Applied applied = site.apply(site.make(tiny, "second"));
  const SelfCheck::Step* waiting = step(applied.record->self_check, "files that need this machine's own libraries");
  REQUIRE(waiting != nullptr);
  CHECK(waiting->detail.find("lib/libnpu.so.1 (libvendorcl.so") != std::string::npos);
  CHECK(waiting->detail.find("lib/libabove.so.1") != std::string::npos);
  CHECK(step(applied.record->self_check, "files that need a driver") == nullptr);
}

TEST_CASE("a library that is made to be preloaded is tried so") {
  if (!host_has_tools()) return;
  const LibraryShop shop;  // ray's libjemalloc.so, as vLLM and ms-swift[all] carry it
  const std::string data = "__attribute__((tls_model(\"initial-exec\"))) static __thread char room[1 << 20];";
  const std::string works = shop.library("libearly.so", data + "char* early(void) { return room; }");
  const std::string breaks = shop.library(
      "libdying.so", data + "__attribute__((constructor)) static void die(void) { room[0] = 1; __builtin_trap(); }");
  const HostSite site;
  SUBCASE("and works") {
    const Applied applied = site.apply(site.make(bundle_with({{"lib/libearly.so", works}})));
    CHECK(step(applied.record->self_check, "native files")->detail == "1 of 1 libraries and programs load");
  }
  SUBCASE("and does not work") {
    CHECK_REFUSED(site.apply(site.make(bundle_with({{"lib/libdying.so", breaks}}))), SelfTest, "lib/libdying.so");
  }
}

TEST_CASE("libraries for other hosts may miss theirs, even where another one of them needs it") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  shop.library("libavutil.so.998", "int av(void) { return 0; }");
  const std::string core =
      shop.library("libtorchcodec_core4.so", "int av(void); int c(void) { return av(); }", {"libavutil.so.998"});
  const std::string ops = shop.library("libtorchcodec_custom_ops4.so", "int c(void); int o(void) { return c(); }",
                                       {"libtorchcodec_core4.so"});
  const HostSite site;
  const Applied applied = site.apply(
      site.make(bundle_with({{"lib/libtorchcodec_core4.so", core}, {"lib/libtorchcodec_custom_ops4.so", ops}})));
  CHECK(step(applied.record->self_check, "plugins that nothing here needs") != nullptr);
}

TEST_CASE("a plugin that nothing needs may miss its host; a library that something needs may not") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const std::string plugin = shop.library("plugin.so", "int of_the_host(void); int (*p)(void) = of_the_host;");
  const std::string other = shop.library("libsealift-host.so.40", "int host_init(void) { return 0; }");
  const std::string bootstrap =
      shop.library("boot.so", "int host_init(void); int boot(void) { return host_init(); }", {"libsealift-host.so.40"});
  const HostSite site;
  SUBCASE("plugins") {
    const Applied applied = site.apply(site.make(bundle_with({{"lib/plugin.so", plugin}, {"lib/boot.so", bootstrap}})));
    const SelfCheck::Step* left = step(applied.record->self_check, "plugins that nothing here needs");
    REQUIRE(left != nullptr);
    CHECK(!left->passed);
    CHECK(left->detail.find("undefined symbol: of_the_host") != std::string::npos);
    CHECK(left->detail.find("libsealift-host.so.40") != std::string::npos);
  }
  SUBCASE("one that lacks a function is named before those that lack a library") {
    std::vector<std::pair<std::string, std::string>> files;
    for (int i = 0; i < 10; ++i)
      files.emplace_back(
          "lib/boot" + std::to_string(i) + ".so",
          shop.library("boot" + std::to_string(i) + ".so",
                       "int host_init(void); int boot(void) { return host_init(); }", {"libsealift-host.so.40"}));
    files.emplace_back("lib/plugin.so", plugin);
    const Applied applied = site.apply(site.make(bundle_with(files)));
    const SelfCheck::Step* left = step(applied.record->self_check, "plugins that nothing here needs");
    REQUIRE(left != nullptr);
    CHECK(left->detail.starts_with("lib/plugin.so"));
    CHECK(left->detail.find("more") != std::string::npos);
  }
  SUBCASE("a library that another one needs") {
    const std::string user =
        shop.library("libuser.so", "int boot(void); int user(void) { return boot(); }", {"boot.so"});
    CHECK_REFUSED(site.apply(site.make(bundle_with({{"lib/boot.so", bootstrap}, {"lib/libuser.so", user}}))), SelfTest,
                  "lib/boot.so");
    CHECK(!fs::exists(site.current()));
    CHECK(status_of(site.prefix()).failed->got.find("libsealift-host.so.40") != std::string::npos);
  }
  SUBCASE("an extension module") {
    CHECK_REFUSED(site.apply(site.make(bundle_with({{"lib/python3.11/site-packages/x.cpython-311.so", bootstrap}}))),
                  SelfTest, "libsealift-host.so.40");
  }
  SUBCASE("a program") {
    const std::string program = shop.make("tool", "int boot(void); int main(void) { return boot(); }",
                                          "-Wl,--allow-shlib-undefined", {"boot.so"});
    CHECK_REFUSED(site.apply(site.make(bundle_with({{"bin/tool", program}}))), SelfTest, "bin/tool");
  }
}

TEST_CASE("a plugin whose host has an older library than it wants is passed over, as one whose host has none") {
  if (!host_has_tools()) return;
  const LibraryShop shop;  // as nvshmem_transport_libfabric, where Debian 12 has its libfabric
  const std::string folder = shop.dir.path().string();
  const auto of_version = [&](const std::string& version) {
    write_file(shop.dir / "versions", version + " { global: *; };\n");
    return shop.make("libfabrics.so.41", "int host_init(void) { return 0; }",
                     "-shared -Wl,-soname,libfabrics.so.41 -Wl,--version-script=" + folder + "/versions");
  };
  const auto transport = [&](const std::string& where) {
    return shop.make("transport.so", "int host_init(void); int t(void) { return host_init(); }",
                     "-shared -Wl,-soname,transport.so '-Wl,-rpath," + where + "'", {"libfabrics.so.41"});
  };
  of_version("HOST_2");
  const std::string plugin = transport(folder), beside = transport("$ORIGIN");
  const std::string user = shop.library("libuser.so", "int t(void); int user(void) { return t(); }", {"transport.so"});
  const std::string older = of_version("HOST_1");
  const HostSite site;
  SUBCASE("a plugin") {
    const Applied applied = site.apply(site.make(bundle_with({{"lib/transport.so", plugin}})));
    const SelfCheck::Step* left = step(applied.record->self_check, "plugins that nothing here needs");
    REQUIRE(left != nullptr);
    CHECK(left->detail.find("version `HOST_2' not found") != std::string::npos);
  }
  SUBCASE("a library that another one needs") {
    CHECK_REFUSED(site.apply(site.make(bundle_with({{"lib/transport.so", plugin}, {"lib/libuser.so", user}}))),
                  SelfTest, "HOST_2");
  }
  SUBCASE("one of several plugins, beside an older library of the bundle itself") {  // bitsandbytes for XPU
    const Applied applied =
        site.apply(site.make(bundle_with({{"lib/libbitsandbytes_xpu1.so", beside}, {"lib/libfabrics.so.41", older}})));
    CHECK(step(applied.record->self_check, "plugins that nothing here needs") != nullptr);
  }
  SUBCASE("the one of several plugins that is for this host") {
    CHECK_REFUSED(site.apply(site.make(
                      bundle_with({{"lib/libbitsandbytes_cuda130.so", beside}, {"lib/libfabrics.so.41", older}}))),
                  SelfTest, "HOST_2");
  }
  SUBCASE("an older library of the bundle itself") {
    CHECK_REFUSED(site.apply(site.make(bundle_with({{"lib/transport.so", beside}, {"lib/libfabrics.so.41", older}}))),
                  SelfTest, "HOST_2");
  }
}

TEST_CASE(
    "a library that kills the interpreter fails the self-test by name; one that is only at odds with another passes") {
  if (!host_has_tools()) return;
  const LibraryShop shop;
  const std::string deadly =
      shop.library("libdeadly.so", "__attribute__((constructor)) void go(void) { __builtin_trap(); }");
  const std::string good = shop.library("libzgood.so", "int good(void) { return 1; }");
  // Each of the two is fine, but not in one process.
  const std::string at_odds =
      "#include <stdlib.h>\n__attribute__((constructor)) void go(void) { if (getenv(\"SEEN\")) abort(); "
      "setenv(\"SEEN\", "
      "\"1\", 1); }";
  const std::string one = shop.library("libone.so", at_odds), two = shop.library("libtwo.so", at_odds);
  const HostSite site;
  CHECK_REFUSED(site.apply(site.make(bundle_with({{"lib/libdeadly.so", deadly}, {"lib/libzgood.so", good}}))), SelfTest,
                "1 of 2 do not load: lib/libdeadly.so (the interpreter ended with signal");
  const Applied applied = site.apply(
      site.make(bundle_with({{"lib/libone.so", one}, {"lib/libtwo.so", two}, {"lib/libzgood.so", good}}), "bundle2"));
  CHECK(step(applied.record->self_check, "native files")->detail == "3 of 3 libraries and programs load");
}

TEST_CASE("less is tried on request, and training only then") {
  const HostSite site;
  TinyBundle tiny = bundle_with({});
  tiny.items.push_back(file_item("programs/bin/sealift-train",
                                 "#!/bin/sh\ntest \"$1 $2 $3\" = 'run --steps 2' || exit 9\n", "bin/sealift-train",
                                 true));
  tiny.items.push_back(file_item("files/no-train", "x", "share/x"));
  const MadeBundle made = site.make(tiny);
  ApplyOptions options = site.options(made);
  options.self_check = SelfCheckOptions::Depth::Imports;
  CHECK(site.apply(options).record->self_check.steps.empty());
  options.prefix = Prefix(site.dir / "other");
  options.self_check = SelfCheckOptions::Depth::Training;
  const SelfCheck test = site.apply(options).record->self_check;
  REQUIRE(step(test, "training") != nullptr);
  CHECK(step(test, "training")->passed);
  REQUIRE(step(test, "verification") != nullptr);
  CHECK(!step(test, "verification")->passed);
  CHECK(step(test, "verification")->detail == "the bundle places no bin/sealift-verify");
}

TEST_CASE("a carried verifier that finds a fault refuses the generation; one that could run nothing is no pass") {
  const HostSite site;
  const auto verified = [&](const std::string& folder, const std::string& ending) {
    TinyBundle tiny = bundle_with({});
    tiny.items.push_back(file_item("programs/bin/sealift-verify",
                                   "#!/bin/sh\ntest \"$1 $2 $3\" = 'run --level quick' || exit 9\n" + ending,
                                   "bin/sealift-verify", true));
    ApplyOptions options = site.options(site.make(tiny, folder));
    options.prefix = Prefix(site.dir / ("prefix-" + folder));
    options.self_check = SelfCheckOptions::Depth::Training;
    return options;
  };
  CHECK_REFUSED(site.apply(verified("bad", "echo 'FAIL arithmetic.same_bits: rank 0' >&2; exit 1\n")), SelfTest,
                "FAIL arithmetic.same_bits: rank 0");
  const SelfCheck none = site.apply(verified("none", "echo 'NOT RUN' >&2; exit 2\n")).record->self_check;
  CHECK(!step(none, "verification")->passed);
  CHECK(step(none, "verification")->detail.find("NOT RUN") != std::string::npos);
  const SelfCheck good = site.apply(verified("good", "exit 0\n")).record->self_check;
  CHECK(step(good, "verification")->passed);
}

TEST_CASE("two ranks are asked for a sum where there is a torch; a loopback that is down is no pass") {
  const HostSite site;
  const auto with_torch = [](const std::string& ending) {
    TinyBundle tiny{.arch = probe().target.arch};
    tiny.items = {
        file_item("files/python", "#!/bin/sh\ntest -d \"$5\" || exit 9\n" + ending, "bin/python3", true),
        wheel_item({.name = "torch", .files = {{"torch/__init__.py", ""}, {"torch/distributed/__init__.py", ""}}})};
    return tiny;
  };
  CHECK_REFUSED(site.apply(site.make(with_torch("echo 'rank 1 got nothing' >&2; exit 1\n"), "bad")), SelfTest,
                "rank 1 got nothing");
  const Applied not_run = site.apply(site.make(with_torch("echo 'the loopback is not up' >&2; exit 77\n"), "down"));
  CHECK(!step(not_run.record->self_check, "all-reduce of two ranks")->passed);
  CHECK(step(not_run.record->self_check, "all-reduce of two ranks")->detail == "the loopback is not up");
  const HostSite second;
  const Applied passed = second.apply(second.make(with_torch("exit 0\n")));
  CHECK(step(passed.record->self_check, "all-reduce of two ranks")->passed);
}
