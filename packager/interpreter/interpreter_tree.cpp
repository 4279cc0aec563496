// SPDX-License-Identifier: Apache-2.0
// Folders, links, then the few files that are ours; see interpreter_tree.hpp.
#include "packager/interpreter/interpreter_tree.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// A distribution's interpreter only searches dist-packages; this adds the folder that the installer fills.
constexpr const char* kSiteCustomize = R"(# Makes the packages of this prefix visible; written by sealift-pack.
import os
import site
import sys

if sys.prefix == sys.base_prefix:
    _folder = os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    if _folder not in sys.path:
        site.addsitedir(_folder)
)";

// PEP 668: pip and uv leave alone what was signed. pip prints the text.
constexpr const char* kExternallyManaged = R"([externally-managed]
Error=This Python is a generation that sealift-install made from a signed bundle. Packages that
 are installed into it would change what was signed: doctor would find it, and the next switch would
 leave them behind. For packages of your own, make a virtual environment on top of it:

     sealift-install venv DIR --prefix PREFIX
     . DIR/bin/activate

 It sees all packages of this generation, and pip and uv install into it. Packages that all should
 have belong into the next bundle.
)";

// Python takes the folder lib-dynload for the mark of its own exec_prefix. Without it the prefix of its build counts,
// often /usr, whose site folders, and the .pth files there, are then the host's.
constexpr const char* kLibDynload =
    "Python finds its own exec_prefix by this folder; this file keeps it where there is no module in it.\n";

bool left_out_folder(const std::string& name) {
  static constexpr std::string_view kNames[] = {"__pycache__", "test",          "tests",
                                                "idle_test",   "site-packages", "dist-packages"};
  return name.starts_with("config-") || std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Tests, static libraries, site settings of this machine, and modules that need more than their libraries (Tk needs
// Tcl's scripts; NIS would pull in Kerberos).
bool left_out_file(const std::string& name) {
  static constexpr std::string_view kNames[] = {"sitecustomize.py", "usercustomize.py", "EXTERNALLY-MANAGED"};
  static constexpr std::string_view kModules[] = {
      "_test", "_ctypes_test.", "_xxtestfuzz.", "_xxsubinterpreters_test", "xxlimited", "_tkinter.", "nis."};
  if (name.ends_with(".pyc") || name.ends_with(".a")) return true;
  if (name.ends_with(".so"))
    return std::any_of(std::begin(kModules), std::end(kModules), [&](auto module) { return name.starts_with(module); });
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_executable(const fs::path& file) {
  return (fs::status(file).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

using Links = std::vector<std::pair<std::string, fs::path>>;  // place in the tree, the link itself

void gather_folder(const fs::path& folder, const std::string& place, Tree& tree, Links& links) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const fs::file_type type = entry.symlink_status().type();
    const std::string inner = place + "/" + name;
    if (type == fs::file_type::directory) {
      if (!left_out_folder(name)) gather_folder(entry.path(), inner, tree, links);
    } else if (left_out_file(name)) {
      continue;
    } else if (type == fs::file_type::symlink) {
      links.emplace_back(inner, entry.path());
    } else if (type == fs::file_type::regular) {
      tree[inner] = {.source = entry.path(), .executable = is_executable(entry.path())};
    }
  }
}

// Links between files of the tree stay links; others are replaced by the file behind them, or dropped without one.
void settle_links(const Links& links, Tree& tree) {
  for (const auto& [place, link] : links) {
    const std::string target = fs::read_symlink(link).string();
    const std::string meant = (fs::path(place).parent_path() / target).lexically_normal().string();
    std::error_code error;
    if (bundle::link_stays_inside(bundle::SafePath::parse(place, link.string()), target) && tree.contains(meant))
      tree[place] = {.text = target, .link = true};
    else if (fs::is_regular_file(link, error))
      tree[place] = {.source = fs::canonical(link), .executable = is_executable(link)};
  }
}

// A distribution's ensurepip takes its wheels from a folder of the system; the carried one from beside itself, so that
// `python -m venv` works where there is no such folder.
void carry_ensurepip(const Interpreter& interpreter, const std::string& stdlib, Tree& tree) {
  static const std::string kFolder = "sysconfig.get_config_var('WHEEL_PKG_DIR')";
  const auto found = tree.find(stdlib + "/ensurepip/__init__.py");
  if (interpreter.wheels.empty() || found == tree.end() || !fs::is_directory(interpreter.wheels)) return;
  std::string text = bundle::read_text(found->second.source, std::uint64_t{1} << 20);
  const std::size_t at = text.find(kFolder);
  if (at == text.npos) return;
  text.replace(at, kFolder.size(), "os.path.join(os.path.dirname(os.path.abspath(__file__)), '_bundled')");
  found->second = {.text = std::move(text)};
  for (const fs::directory_entry& file : fs::directory_iterator(interpreter.wheels)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(".whl") && (name.starts_with("pip-") || name.starts_with("setuptools-")))
      tree[stdlib + "/ensurepip/_bundled/" + name] = {.source = fs::canonical(file.path())};
  }
}

// Debian's says that packages lie in local/lib/python3.11/dist-packages; here they lie where the installer puts them,
// and some look for others there: transformer-engine for cuDNN.
void carry_sysconfig(const std::string& stdlib, Tree& tree) {
  static const std::string kLocal = "prefix_scheme = 'posix_local'", kOwn = "prefix_scheme = 'posix_prefix'";
  for (const char* name : {"/sysconfig.py", "/sysconfig/__init__.py"}) {  // the latter from Python 3.13 on
    const auto found = tree.find(stdlib + name);
    if (found == tree.end() || found->second.link) continue;
    std::string text = bundle::read_text(found->second.source, std::uint64_t{1} << 20);
    const std::size_t at = text.find(kLocal);
    if (at == text.npos) continue;
    text.replace(at, kLocal.size(), kOwn);
    found->second = {.text = std::move(text)};
  }
}

}  // namespace

Tree gather_interpreter(const Interpreter& interpreter, const fs::path& launcher) {
  const std::string name = "python" + interpreter.minor;
  Tree tree;
  Links links;
  const std::string stdlib = interpreter.stdlib.lexically_relative(interpreter.prefix).string();
  gather_folder(interpreter.stdlib, stdlib, tree, links);
  if (!interpreter.headers.empty()) gather_folder(interpreter.headers, "include/" + name, tree, links);
  settle_links(links, tree);
  carry_ensurepip(interpreter, stdlib, tree);
  carry_sysconfig(stdlib, tree);
  if (!interpreter.headers.empty() && !interpreter.pyconfig.empty())
    tree["include/" + name + "/pyconfig.h"] = {.source = interpreter.pyconfig};
  tree["libexec/" + name] = {.source = interpreter.executable, .executable = true};
  tree["bin/" + name] = {.source = launcher, .executable = true};
  tree["bin/python3"] = {.text = name, .link = true};
  tree["bin/python"] = {.text = name, .link = true};
  tree[stdlib + "/lib-dynload/README"] = {.text = kLibDynload};
  tree[stdlib + "/EXTERNALLY-MANAGED"] = {.text = kExternallyManaged};
  if (!interpreter.finds_site_packages) tree[stdlib + "/sitecustomize.py"] = {.text = kSiteCustomize};
  return tree;
}

}  // namespace sealift::packager
