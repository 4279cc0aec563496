// SPDX-License-Identifier: Apache-2.0
// What an interpreter executes when it starts, told by the kernel: every file that it opens or has mapped is one of the
// signed bundle's, with the signed bytes, or one of a short list of the system's. -X importtime names the same modules.
// The list of the bundle's files is made from the bundle, not from what was installed.
#include "bundle/wheel/wheel_startup.hpp"
#include "installer/doctor/expected_tree.hpp"
#include "tests/installer/start/real_python.hpp"
#include "tests/support/opened_files.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

const std::string kAllowed = "import sys; sys.sealift_was_here = True\n";
const std::string kLibrary = "lib/python3.11/", kPackages = "lib/python3.11/site-packages/";

// By their full names, links resolved; names that end with '*' stand for all that begin so. Nothing else of the host.
constexpr std::string_view kSystemFiles[] = {"/etc/ld.so.cache",
                                             "/proc/*",  // what the kernel tells
                                             "/etc/locale.alias",
                                             "/usr/share/locale/locale.alias",
                                             "/usr/lib/locale/*",  // the host's language
                                             "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache",
                                             "/etc/localtime",
                                             "/usr/share/zoneinfo/*",  // and its time
                                             "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                                             "/usr/lib/x86_64-linux-gnu/libc.so.6",
                                             "/usr/lib/x86_64-linux-gnu/libm.so.6",
                                             "/usr/lib/x86_64-linux-gnu/libz.so.1*",
                                             "/usr/lib/x86_64-linux-gnu/libexpat.so.1*",
                                             "/usr/bin/dash",
                                             "/usr/bin/dirname",
                                             "/usr/bin/realpath"};  // of a shell, and of a script's first lines

bool is_system_file(const std::string& path) {
  return std::any_of(std::begin(kSystemFiles), std::end(kSystemFiles), [&](std::string_view name) {
    return name.ends_with('*') ? path.starts_with(name.substr(0, name.size() - 1)) : path == name;
  });
}

// A whole Python, and wheels that have something to run at its start.
TinyBundle starting_bundle() {
  TinyBundle tiny = real_python(1);
  tiny.startup_files = {bundle::sha256(bundle::as_bytes(kAllowed))};
  tiny.items[1] = wheel_item({.files = {{"demo/__init__.py", "def main():\n    pass\n"}, {"demo/late.py", ""}},
                              .entry_points = "[console_scripts]\ndemo-run = demo:main\n"});
  tiny.items.push_back(
      wheel_item({.name = "allowed", .files = {{"allowed.pth", kAllowed}, {"allowed/__init__.py", ""}}}));
  tiny.items.push_back(
      wheel_item({.name = "setuptools",
                  .files = {{"distutils-precedence.pth", bundle::detail::distutils_line("local") + "\n"},
                            {"_distutils_hack/__init__.py", "def add_shim():\n    pass\n"},
                            {"setuptools/__init__.py", "raise SystemExit('imported')\n"}}}));
  return tiny;
}

// What the signed bundle says that the generation holds.
Layout signed_layout(const MadeBundle& made, const Prefix& prefix) {
  bundle::Progress silent(nullptr);
  const bundle::VerifiedBundle verified = bundle::verify(bundle::open(made.folder), made.trusted, kNow);
  const bundle::Environment& environment = verified.manifest().environment;
  GenerationRecord record{
      .number = 1, .interpreter = environment.interpreter.text(), .site_packages = environment.site_packages.text()};
  for (const bundle::Environment::Placement& placement : environment.placements)
    record.entries.push_back({.path = placement.entry.text(),
                              .item = Store::item_name(*verified.manifest().find(placement.entry)),
                              .into = placement.into,
                              .left_out = placement.left_out});
  return generation_tree(prefix, record, signed_records(verified, 1, silent)).layout;
}

struct StartSite : Site {
  MadeBundle made = make(starting_bundle());
  std::string home = dir / "home";
  std::string root;
  Layout layout;

  StartSite() {
    fs::create_directory(home);
    ApplyOptions asked = options(made);
    asked.self_check = SelfCheckOptions::Depth::Imports;
    apply(asked);
    root = fs::canonical(current()).string() + "/";
    layout = signed_layout(made, prefix());
  }

  OpenedFiles start(const std::vector<std::string>& words, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "HOME=" + home, "P=" + prefix().folder().string()};
    environment.insert(environment.end(), more.begin(), more.end());
    return files_opened_by(words, environment, dir / "said");
  }
  OpenedFiles start_python(const std::vector<std::string>& more = {}) const {
    return start({root + "bin/python3", "-X", "importtime", "-c", "pass"}, more);
  }
  // The module that the bytecode in the user's own cache was compiled from; empty for all other files.
  std::string source_of(const std::string& path) const {
    const std::string cache = home + "/.cache/sealift/pycache/", compiled = ".cpython-311.pyc";
    if (!path.starts_with(cache) || !path.ends_with(compiled)) return {};
    const std::string place = path.substr(path.find('/', cache.size()));
    return place.substr(0, place.size() - compiled.size()) + ".py";
  }
  // The place below the generation, or nothing where it is no file of the bundle with its bytes.
  std::string place_of(const std::string& path) const {
    const std::string source = source_of(path), file = source.empty() ? path : source;
    if (!file.starts_with(root)) return {};
    const std::string place = file.substr(root.size());
    const auto found = layout.find(place);
    if (found == layout.end()) return {};
    const bool text = found->second.type == Place::Type::Text;
    if (!text && found->second.type != Place::Type::File) return {};
    const bundle::Digest expected =
        text ? bundle::sha256(bundle::as_bytes(found->second.text)) : found->second.file.sha256;
    return bundle::sha256(bundle::as_bytes(read_file(file))) == expected ? place : std::string();
  }
  bool is_installers_own(const std::string& path) const {
    return path == root + std::string(bundle::kGenerationRecord) || path == prefix().folder() / "activate";
  }
  std::vector<std::string> foreign(const OpenedFiles& opened) const {
    std::vector<std::string> found;
    for (const std::string& path : opened.files)
      if (place_of(path).empty() && !is_installers_own(path) && !is_system_file(path)) found.push_back(path);
    return found;
  }
  // Of the bundle's files below `folder`, without it.
  std::set<std::string> opened_below(const std::string& folder, const OpenedFiles& opened) const {
    std::set<std::string> found;
    for (const std::string& path : opened.files)
      if (const std::string place = place_of(path); place.starts_with(folder))
        found.insert(place.substr(folder.size()));
    return found;
  }
};

// "import time:       174 |        174 |   encodings.aliases" -> encodings.aliases
std::set<std::string> timed_modules(const std::string& output) {
  std::set<std::string> modules;
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    const std::string line = output.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("import time:")) modules.insert(line.substr(line.find_last_of(" |") + 1));
  }
  return modules;
}

// encodings/__init__.py -> encodings
std::string module_of(std::string place) {
  place.resize(place.size() - (place.ends_with("/__init__.py") ? 12 : 3));
  std::replace(place.begin(), place.end(), '/', '.');
  return place;
}

std::string listed(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += path + "\n";
  return text;
}

}  // namespace

TEST_CASE("an interpreter that starts reads and maps files of its bundle and a short list of the system's, no others") {
  if (!host_interpreter_is_there()) return;
  const StartSite site;
  const std::set<std::string> at_start = {"_distutils_hack/__init__.py", "allowed.pth", "distutils-precedence.pth"};
  std::set<std::string> with_demo = at_start;
  with_demo.insert("demo/__init__.py");
  struct Start {
    std::vector<std::string> words;
    std::set<std::string> packages;
  };
  const std::string python = site.root + "bin/python3";
  const std::vector<Start> starts = {
      {{python, "-X", "importtime", "-c", "pass"}, at_start},
      {{python, "-X", "importtime", "-c", "pass"}, at_start},  // again, with bytecode in the user's cache
      {{python, "-I", "-X", "importtime", "-c", "import demo"}, with_demo},
      {{"/usr/bin/dash", "-c", ". $P/activate; exec python -X importtime -c pass"}, at_start},
      {{site.root + "bin/demo-run"}, with_demo}};
  for (const Start& start : starts) {
    CAPTURE(listed(start.words));
    const OpenedFiles opened = site.start(start.words);
    CHECK(opened.status == 0);
    CHECK_MESSAGE(site.foreign(opened).empty(), listed(site.foreign(opened)));
    CHECK(opened.files.contains(site.root + "libexec/python3.11"));
    CHECK(site.opened_below(kPackages, opened) == start.packages);
    const std::set<std::string> timed = timed_modules(opened.output);
    if (timed.empty()) continue;  // a script is started without it
    for (const std::string& place : site.opened_below(kLibrary, opened))
      if (place.ends_with(".py") && !place.starts_with("site-packages/"))
        CHECK_MESSAGE(timed.contains(module_of(place)), place);
  }
}

TEST_CASE("the account of a start names what was planted: modules, start-up files, libraries, changed ones") {
  if (!host_interpreter_is_there()) return;
  const StartSite site;
  const std::string outside = site.dir / "planted";
  const auto planted = [&](const std::string& path, const std::string& text) {
    fs::remove(path);  // a file of the store has other names, which keep their bytes
    write_file(path, text);
    return path;
  };
  const auto names = [&](const std::string& path, const std::vector<std::string>& more = {}) {
    const OpenedFiles opened = site.start_python(more);
    const std::vector<std::string> foreign = site.foreign(opened);
    CHECK_MESSAGE(std::find(foreign.begin(), foreign.end(), path) != foreign.end(), path << " is not in\n"
                                                                                         << listed(foreign));
    fs::remove(path);
  };
  names(planted(site.root + kPackages + "evil.pth", "import sys\n"));
  names(planted(site.root + kPackages + "usercustomize.py", ""), {"PYTHONNOUSERSITE="});
  names(planted(outside + "/usercustomize.py", ""), {"PYTHONNOUSERSITE=", "SEALIFT_PYTHONPATH=" + outside});
  names(planted(outside + "/libm.so.6", read_file("/usr/lib/x86_64-linux-gnu/libm.so.6")),
        {"LD_LIBRARY_PATH=" + outside});
  names(planted(site.root + kPackages + "allowed.pth", "import sys; sys.sealift_was_changed = True\n"));
  names(planted(site.root + kLibrary + "sitecustomize.py", "raise SystemExit\n"));
}
