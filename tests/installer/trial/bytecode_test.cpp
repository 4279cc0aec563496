// SPDX-License-Identifier: Apache-2.0
// Compiled modules: made by the generation's own interpreter, loaded by it, and kept out of the store.
#include "installer/trial/bytecode.hpp"

#include "installer/preflight/preflight_run.hpp"
#include "tests/installer/host_python.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

TinyBundle with_modules() {
  TinyWheel wheel{.files = {{"demo/__init__.py", "ANSWER = 42\n"},
                            {"demo/part.py", "def where():\n    return where.__code__.co_filename\n"},
                            {"demo/template.py", "this is {{ no }} python at all\n"}}};
  TinyBundle tiny;
  tiny.items = {host_python(), wheel_item(wheel)};
  return tiny;
}

Applied compiled(const Site& site, const MadeBundle& made, const Prefix& prefix) {
  ApplyOptions options = site.options(made);
  options.prefix = prefix;
  options.threads = 3;
  options.compile_bytecode = true;
  return site.apply(options);
}

std::map<std::string, std::string> compiled_files(const fs::path& root) {
  std::map<std::string, std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".pyc")
      found[entry.path().lexically_relative(root).string()] = read_file(entry.path());
  return found;
}

}  // namespace

TEST_CASE(
    "on request every module is compiled into the generation, the same bytes wherever it is, and loads from there") {
  if (!host_python_is_there()) return;
  const Site site;
  const MadeBundle made = site.make(with_modules());
  compiled(site, made, site.prefix());
  const auto files = compiled_files(site.site_packages());
  CHECK(files.size() == 2);  // not the template
  for (const auto& file : files) {
    const auto& path = file.first;
    const auto& bytes = file.second;
    INFO(path);
    CHECK(path.starts_with("demo/__pycache__/"));
    CHECK((status_of_path(site.site_packages() / path).st_mode & 07777) == 0444);
    CHECK(bytes.substr(4, 4) == std::string("\1\0\0\0", 4));  // PEP 552: by hash, not checked
    CHECK(bytes.find(site.dir.path().string()) == std::string::npos);
  }
  CHECK(compiled_files(site.prefix().store()).empty());
  const Prefix other(site.dir / "other");
  compiled(site, made, other);
  CHECK(compiled_files(other.current() / "lib/python3.11/site-packages") == files);
  // Without its source's text the module still answers, with its real path: so it was loaded from here.
  const fs::path part = site.site_packages() / "demo/part.py";
  fs::permissions(part, fs::perms(0644));
  std::ofstream(part) << "raise SystemExit('compiled again')\n";
  const std::string command = "cd " + site.site_packages().string() + " && " + kHostPython +
                              " -B -c 'import demo.part; print(demo.part.where())' > " + (site.dir / "said").string();
  CHECK(std::system(command.c_str()) == 0);
  CHECK(read_file(site.dir / "said").find("demo/part.py") != std::string::npos);
}

TEST_CASE("with bytecode the plan asks for its room and inodes too, and refuses where only the rest would fit") {
  const Site site;
  TinyBundle tiny = with_modules();
  tiny.installed_files = 100;
  tiny.installed_size = std::uint64_t{100} << 20;
  const MadeBundle made = site.make(tiny);
  Disk disk;
  const Applied without = site.apply(made, disk, true);
  const std::uint64_t bytes = without.needed_bytes + 100 * ((32 << 10) + 512);  // of the wheel, not of the program
  ApplyOptions options{.bundle = made.folder,
                       .prefix = site.prefix(),
                       .fingerprint = made.trusted.state.pinned,
                       .now = kNow,
                       .machine = site.machine,
                       .dry_run = true,
                       .compile_bytecode = true};
  bundle::Progress silent(nullptr);
  const auto planned_on = [&](SmallDisk small) { return apply(options, small, silent); };
  const Applied planned = planned_on(SmallDisk({.bytes = bytes, .inodes = without.needed_inodes + 100}));
  CHECK(planned.needed_bytes == bytes);
  CHECK(planned.needed_inodes == without.needed_inodes + 100);
  CHECK_REFUSED(planned_on(SmallDisk({.bytes = bytes - 1, .inodes = 1'000'000})), Space, "not enough room");
  CHECK_REFUSED(planned_on(SmallDisk({.bytes = bytes, .inodes = without.needed_inodes + 99})), Space, "inodes");
  CHECK(exit_code_of(site.preflight(options, SmallDisk({.bytes = bytes - 1, .inodes = 1'000'000}))) == 9);
}

TEST_CASE("an entry of few bytes and many names is not said to have more bytecode than twice its bytes") {
  const Site site;
  TinyBundle tiny = with_modules();
  tiny.installed_files = 1000;
  tiny.installed_size = 64 << 10;
  const MadeBundle made = site.make(tiny);
  Disk disk;
  bundle::Progress silent(nullptr);
  const std::uint64_t without = site.apply(made, disk, true).needed_bytes;
  const Applied planned = apply({.bundle = made.folder,
                                 .prefix = site.prefix(),
                                 .fingerprint = made.trusted.state.pinned,
                                 .now = kNow,
                                 .machine = site.machine,
                                 .dry_run = true,
                                 .compile_bytecode = true},
                                disk, silent);
  CHECK(planned.needed_bytes == without + 2 * (64 << 10) + 1000 * 512);
}

TEST_CASE("an interpreter that cannot compile fails the installation before the switch") {
  const Site site;
  TinyBundle tiny = with_modules();
  tiny.items[0].bytes = "#!/bin/sh\necho 'No module named py_compile' >&2\nexit 1\n";
  CHECK_REFUSED(compiled(site, site.make(tiny), site.prefix()), SelfTest, "No module named py_compile");
  CHECK(!fs::exists(site.current()));
}
