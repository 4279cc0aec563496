// SPDX-License-Identifier: Apache-2.0
#include "bundle/wheel/wheel_startup.hpp"

#include <algorithm>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

namespace detail {

std::string distutils_line(std::string_view unless_asked) {
  return "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, '" + std::string(unless_asked) +
         "') == 'local'; enabled and __import__('_distutils_hack').add_shim();";
}

std::string namespace_line(const std::string& package, bool both) {
  std::string folders, parent, child = package;
  for (std::size_t begin = 0; begin <= package.size();) {
    const std::size_t end = std::min(package.find('.', begin), package.size());
    folders += "'" + package.substr(begin, end - begin) + "'" + (end < package.size() ? ", " : begin == 0 ? "," : "");
    begin = end + 1;
  }
  if (const std::size_t dot = package.rfind('.'); dot != package.npos)
    parent = package.substr(0, dot), child = package.substr(dot + 1);
  const std::string name = "'" + package + "'", has = both ? "has_mfs and " : "";
  return std::string("import sys, types, os;") + (both ? "has_mfs = sys.version_info > (3, 5);" : "") +
         "p = os.path.join(sys._getframe(1).f_locals['sitedir'], *(" + folders + "));importlib = " + has +
         "__import__('importlib.util');" + has + "__import__('importlib.machinery');m = " + has +
         "sys.modules.setdefault(" + name +
         ", importlib.util.module_from_spec(importlib.machinery.PathFinder.find_spec(" + name +
         ", [os.path.dirname(p)])));m = m or sys.modules.setdefault(" + name + ", types.ModuleType(" + name +
         "));mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)" +
         (parent.empty() ? "" : ";m and setattr(sys.modules['" + parent + "'], '" + child + "', m)");
}

}  // namespace detail

namespace {

// The package that a namespace line of setuptools' makes; empty when it is no such line, letter by letter.
std::string package_of_namespace_line(std::string_view line) {
  constexpr std::string_view kBefore = "sys.modules.setdefault('";
  const std::size_t at = line.find(kBefore);
  if (at == line.npos) return {};
  const std::string package(
      line.substr(at + kBefore.size(), line.find('\'', at + kBefore.size()) - at - kBefore.size()));
  const bool plain = !package.empty() && std::all_of(package.begin(), package.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  if (!plain || package.front() == '.' || package.back() == '.' || package.find("..") != package.npos) return {};
  const bool known = line == detail::namespace_line(package, true) || line == detail::namespace_line(package, false);
  return known ? package : std::string();
}

// str.splitlines, which Python 3.13 uses, ends lines at more characters than reading a text file does; and text beyond
// ASCII is decoded as the locale says by older ones.
bool is_read_alike(unsigned char c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0x7f);
}

void read_line(std::string_view line, StartupFile& file) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  if (line.empty() || line.front() == '#') return;
  if (line.starts_with("import ") || line.starts_with("import\t")) {
    if (line == detail::distutils_line("local") || line == detail::distutils_line("stdlib")) {
      file.distutils = true;
    } else if (const std::string package = package_of_namespace_line(line); !package.empty()) {
      file.namespaces.push_back(package);
    } else if (file.fault.empty()) {
      file.fault = "it runs code when Python starts: " + SafePath::printable(line.substr(0, 80));
    }
    return;
  }
  try {
    file.folders.push_back(SafePath::parse(line, "").text());
  } catch (const Error& error) {
    if (file.fault.empty()) file.fault = "it adds a folder that is not the wheel's: " + error.facts().got;
  }
}

}  // namespace

StartupFile read_pth(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return {.fault = "it starts with a byte order mark"};
  if (!std::all_of(text.begin(), text.end(), [](char c) { return is_read_alike(static_cast<unsigned char>(c)); }))
    return {.fault = "it holds a character that one Python takes for the end of a line and another does not"};
  StartupFile file;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    read_line(text.substr(begin, end - begin), file);
    begin = end + 1;
  }
  return file;
}

std::string fault_of_pth(std::string_view text) {
  return read_pth(text).fault;
}

bool is_pth(std::string_view path) {
  return path.find('/') == path.npos && case_folded(path).ends_with(".pth");
}

}  // namespace sealift::bundle
