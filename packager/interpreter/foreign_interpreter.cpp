// SPDX-License-Identifier: Apache-2.0
// Reads what `python -c` would print; see foreign_interpreter.hpp. Sources: CPython, Modules/getpath.py (the layout),
// Include/patchlevel.h (PY_VERSION, a text in each executable), Modules/makesetup (MODBUILT_NAMES) and
// Modules/config.c.in (the modules that are always built in); uv's names of what it installs,
// crates/uv-python/src/installation.rs.
#include "packager/interpreter/foreign_interpreter.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "packager/host/uv.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxScript = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxProgram = std::uint64_t{512} << 20;
constexpr std::size_t kLongestVersion = 24;  // "3.11.2", "3.14.0rc1+"
constexpr const char* kAlwaysBuiltIn[] = {"_ast",     "_imp", "_string", "_tokenize", "_warnings",
                                          "builtins", "gc",   "marshal", "sys"};

[[noreturn]] void refuse_layout(const fs::path& executable, const std::string& expected, const std::string& got) {
  throw Error(ErrorCode::Platform,
              {.what = "this interpreter for another architecture cannot be carried, as its files do not tell enough",
               .where = executable.string(),
               .expected = expected,
               .got = got,
               .next = "take python-build-standalone (uv python install cpython-3.N-linux-ARCH-gnu), or usr of an "
                       "unpacked Debian"});
}

// The texts "3.11.N" that stand alone in the file, between zeros.
void add_versions(const fs::path& file, const std::string& minor, std::set<std::string>& versions) {
  bundle::FileSource source(file);
  const std::string start = '\0' + minor + '.';
  std::string window;  // the end of the last piece, and the new one
  for (std::uint64_t offset = 0; offset < std::min(source.size(), kMaxProgram);) {
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    window.append(bundle::as_text(piece));
    offset += piece.size();
    for (std::size_t at = window.find(start); at != window.npos; at = window.find(start, at + 1)) {
      const std::size_t end = window.find('\0', at + 1);
      if (end == window.npos || end - at > kLongestVersion) continue;
      const std::string text = window.substr(at + 1, end - at - 1);
      const char after = text.size() > minor.size() + 1 ? text[minor.size() + 1] : '\0';
      if (after >= '0' && after <= '9') versions.insert(text);
    }
    if (window.size() > kLongestVersion) window.erase(0, window.size() - kLongestVersion);
  }
}

// "3.11.2", without what a distribution or a candidate has behind it.
std::string version_of(const fs::path& executable, const fs::path& prefix, const std::string& minor) {
  std::set<std::string> versions;
  add_versions(executable, minor, versions);
  std::error_code none;
  const fs::path library = prefix / "lib" / ("libpython" + minor + ".so.1.0");
  if (versions.empty() && fs::is_regular_file(library, none)) add_versions(fs::canonical(library), minor, versions);
  if (versions.size() != 1)
    refuse_layout(executable, "the text " + minor + ".N in it or in lib/libpython" + minor + ".so.1.0, once",
                  versions.empty() ? "none" : *versions.begin() + " and " + *versions.rbegin());
  const std::string text = *versions.begin();
  return text.substr(0, text.find_first_not_of("0123456789."));
}

// The words of 'MODBUILT_NAMES': 'a b ' 'c', as pprint writes a long text.
void add_builtin(const fs::path& file, std::set<std::string>& modules) {
  const std::string text = bundle::read_text(file, kMaxScript), key = "'MODBUILT_NAMES':";
  const std::size_t found = text.find(key);
  if (found == text.npos) return;
  for (std::size_t at = text.find_first_not_of(" \n", found + key.size()); at != text.npos && text[at] == '\'';) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == text.npos) return;
    std::istringstream words(text.substr(at + 1, end - at - 1));
    for (std::string word; words >> word;) modules.insert(word);
    at = text.find_first_not_of(" \n", end + 1);
  }
}

// Debian names modules there too that it has as files, here or in packages of their own; only the latter stay.
std::vector<std::string> builtin_modules(const fs::path& stdlib) {
  std::set<std::string> modules(std::begin(kAlwaysBuiltIn), std::end(kAlwaysBuiltIn));
  for (const fs::directory_entry& entry : fs::directory_iterator(stdlib)) {
    const std::string name = entry.path().filename().string();
    std::error_code none;
    if (name.starts_with("_sysconfigdata_") && name.ends_with(".py") && entry.is_regular_file(none))
      add_builtin(fs::canonical(entry.path()), modules);
  }
  std::error_code none;
  for (fs::directory_iterator it(stdlib / "lib-dynload", none), end; !none && it != end; it.increment(none)) {
    const std::string name = it->path().filename().string();
    modules.erase(name.substr(0, name.find('.')));
  }
  return {modules.begin(), modules.end()};
}

}  // namespace

fs::path find_foreign(const std::string& version, const std::string& arch, const fs::path& uv,
                      const std::string& where) {
  const std::string start = "cpython-" + version + ".", end = "-linux-" + arch + "-gnu";
  const ProcessResult said = run_uv({uv.string(), "python", "dir"});
  const fs::path folder = said.out.substr(0, said.out.find('\n'));
  std::error_code none;
  std::optional<std::pair<bundle::Version, fs::path>> newest;
  for (fs::directory_iterator it(folder, none), last; !none && it != last; it.increment(none)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(end)) continue;
    const std::pair one(bundle::Version::leading(name.substr(8)), it->path() / "bin" / ("python" + version));
    if (fs::is_regular_file(one.second, none) && (!newest || newest->first < one.first)) newest = one;
  }
  if (newest) return newest->second;
  throw Error(ErrorCode::Missing, {.what = "uv has installed no Python " + version + " for " + arch,
                                   .where = where,
                                   .expected = (folder / (start + "N" + end)).string(),
                                   .got = "none",
                                   .next = "uv python install cpython-" + version + end +
                                           "; or name one with [python].interpreter: the folder that holds bin and "
                                           "lib, or a .tar/.tar.gz/.tar.zst with interpreter_sha256"});
}

Interpreter read_foreign(const fs::path& executable, const std::string& minor, const std::string& arch) {
  const fs::path real = fs::canonical(executable), prefix = real.parent_path().parent_path();
  const fs::path library = prefix / "lib" / ("python" + minor), headers = prefix / "include" / ("python" + minor);
  const fs::path pyconfig = prefix / "include" / (arch + "-linux-gnu") / ("python" + minor) / "pyconfig.h";
  const fs::path wheels = prefix / "share/python-wheels";
  if (!fs::is_regular_file(library / "os.py") || !fs::is_regular_file(library / "site.py"))
    refuse_layout(real, "CPython " + minor + " with its standard library beside it",
                  "no os.py and site.py in " + library.string());
  Interpreter found{.executable = real,
                    .version = version_of(real, prefix, minor),
                    .minor = minor,
                    .prefix = prefix,
                    .stdlib = library};
  if (fs::exists(headers / "Python.h")) found.headers = headers;
  if (fs::is_regular_file(pyconfig)) found.pyconfig = pyconfig;
  if (fs::is_directory(wheels)) found.wheels = wheels;
  found.builtin_modules = builtin_modules(library);
  // Debian's has its packages in dist-packages alone.
  found.finds_site_packages =
      bundle::read_text(library / "site.py", kMaxScript).find("dist-packages") == std::string::npos;
  return found;
}

}  // namespace sealift::packager
