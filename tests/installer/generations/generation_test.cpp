// SPDX-License-Identifier: Apache-2.0
// What a generation is worth to Python: importable, relocatable, with a RECORD that its own tools accept.
// Uses the host's python3 as the bundle's interpreter; says so and passes where there is none.
#include "installer/generations/generation.hpp"

#include "installer/layout/generation_builder.hpp"
#include "installer/store/store.hpp"
#include "tests/installer/host_python.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

TinyBundle with_programs() {
  TinyWheel wheel{.files = {{"demo/__init__.py",
                             "import sys\nclass App:\n  @staticmethod\n  def main():\n"
                             "    print('ran', *sys.argv[1:])\n    return 3\n"},
                            {"demo-1.0.data/scripts/demo-script", "#!python\nimport demo\nprint('script')\n"}},
                  .entry_points =
                      "[console_scripts]\ndemo-run = demo:App.main\n[gui_scripts]\n"
                      "demo-gui = demo:App.main [extra]\n[other]\nx = y:z\n"};
  TinyBundle tiny;
  tiny.items = {borrowed_python(), wheel_item(with_odd_name(wheel, "demo-1.0.data/data/share/x,y.txt", "odd name\n"))};
  return tiny;
}

}  // namespace

TEST_CASE("programs run from any place, through links, and after the prefix was moved") {
  if (!host_python_is_there()) return;
  const Site site;
  site.apply(site.make(with_programs()));
  const std::string long_name = "moved here, with spaces and " + std::string(160, 'x');
  const fs::path moved = site.dir / long_name;
  fs::rename(site.prefix().folder(), moved);
  for (const char* name : {"demo-run", "demo-gui"}) {
    const auto [output, status] =
        run_in_shell("cd / && '" + (moved / "current/bin" / name).string() + "' one 'two three'");
    CHECK(output == "ran one two three\n");
    CHECK(WEXITSTATUS(status) == 3);
  }
  CHECK(run_in_shell("'" + (moved / "current/bin/demo-script").string() + "'").output == "script\n");
  fs::create_symlink(moved / "current/bin/demo-run", site.dir / "shortcut");
  CHECK(run_in_shell((site.dir / "shortcut").string() + " a").output == "ran a\n");
  CHECK(run_in_shell("cd '" + (moved / "current/bin").string() + "' && PATH=.:$PATH demo-run b").output == "ran b\n");
}

TEST_CASE("RECORD is what importlib.metadata expects: every file there, every size and digest right") {
  if (!host_python_is_there()) return;
  const Site site;
  site.apply(site.make(with_programs()));
  write_file(site.dir / "check.py",
             "import base64, hashlib, importlib.metadata as m, sys\n"
             "d = next(iter(m.distributions(path=[sys.argv[1]])))\n"
             "assert d.metadata['Name'] == 'demo' and d.read_text('INSTALLER') == 'sealift\\n'\n"
             "rows = 0\n"
             "for f in d.files:\n"
             "    data = f.locate().resolve().read_bytes()\n"
             "    if f.name == 'RECORD':\n"
             "        assert f.hash is None and f.size is None\n"
             "        continue\n"
             "    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()\n"
             "    assert f.hash.mode == 'sha256' and f.hash.value == digest, f\n"
             "    assert f.size == len(data), f\n"
             "    rows += 1\n"
             "names = sorted(f.name for f in d.files)\n"
             "assert 'demo-run' in names and 'demo-gui' in names and 'x,y.txt' in names, names\n"
             "print('rows', rows)\n");
  const auto [output, status] = run_in_shell(std::string(kHostPython) + " " + (site.dir / "check.py").string() + " " +
                                             site.site_packages().string());
  CHECK(output == "rows 9\n");
  CHECK(status == 0);
}

TEST_CASE("an audit notices a file that is missing, changed in size, or extra") {
  const Site site;
  Disk disk;
  const MadeBundle made = site.make(with_programs());
  site.apply(made);
  const Store store(site.prefix());
  std::vector<UnpackedEntry> entries;
  for (const auto& placement : made.manifest.environment.placements) {
    const bundle::Entry* entry = made.manifest.find(placement.entry);
    entries.push_back({entry, placement.into, store.item(*entry), store.record(*entry)});
  }
  const bundle::Environment& environment = made.manifest.environment;
  const Layout layout = lay_out(environment, entries);
  const fs::path root = site.dir / "built";
  build_generation(layout, root, disk, 2);
  const Audit audit = audit_generation(layout, environment, root, 2);
  CHECK(audit.shared == audit.files - 1);  // all but RECORD
  const fs::path file = root / "lib/python3.11/site-packages/demo/__init__.py";
  SUBCASE("missing") {
    fs::remove(file);
    CHECK_REFUSED(audit_generation(layout, environment, root, 2), Digest, "demo/__init__.py");
  }
  SUBCASE("a folder missing") {
    fs::remove_all(file.parent_path());
    CHECK_REFUSED(audit_generation(layout, environment, root, 2), Digest, "site-packages/demo");
  }
  SUBCASE("a link in a folder's place") {
    fs::rename(file.parent_path(), site.dir / "aside");
    fs::create_directory_symlink(site.dir / "aside", file.parent_path());
    CHECK_REFUSED(audit_generation(layout, environment, root, 1), Digest, "a folder");
  }
  SUBCASE("one extra for one missing") {
    fs::rename(file, file.parent_path() / "other.py");
    CHECK_REFUSED(audit_generation(layout, environment, root, 2), Digest, "demo/");
  }
  SUBCASE("another size") {
    fs::remove(file);
    write_file(file, "short");
    CHECK_REFUSED(audit_generation(layout, environment, root, 2), Digest, "5 bytes");
  }
  SUBCASE("extra") {
    write_file(root / "bin/extra", "x");
    CHECK_REFUSED(audit_generation(layout, environment, root, 2), Digest, "bin/extra");
  }
  SUBCASE("a RECORD that was changed") {
    const fs::path record = root / "lib/python3.11/site-packages/demo-1.0.dist-info/RECORD";
    std::string text = read_file(record);
    text[text.find("sha256=") + 10] ^= 1;
    fs::remove(record);
    write_file(record, text);
    CHECK_REFUSED(audit_generation(layout, environment, root, 2), Digest, "RECORD");
  }
}
