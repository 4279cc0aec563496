// SPDX-License-Identifier: Apache-2.0
#include "bundle/wheel/wheel_startup.hpp"

#include <algorithm>

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

bool is_known_startup_line(std::string_view line) {
  if (line == detail::distutils_line("local") || line == detail::distutils_line("stdlib")) return true;
  constexpr std::string_view kBefore = "sys.modules.setdefault('";
  const std::size_t at = line.find(kBefore);
  if (at == line.npos) return false;
  const std::string package(
      line.substr(at + kBefore.size(), line.find('\'', at + kBefore.size()) - at - kBefore.size()));
  const bool plain = !package.empty() && std::all_of(package.begin(), package.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  return plain && (line == detail::namespace_line(package, true) || line == detail::namespace_line(package, false));
}

}  // namespace

std::string fault_of_pth(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return "it starts with a byte order mark";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("import ") || line.starts_with("import\t")) {
      if (!is_known_startup_line(line))
        return "it runs code when Python starts: " + SafePath::printable(line.substr(0, 80));
      continue;
    }
    try {
      SafePath::parse(line, "");
    } catch (const Error& error) {
      return "it adds a folder that is not the wheel's: " + error.facts().got;
    }
  }
  return {};
}

bool is_startup_module(std::string_view path) {
  const std::string_view top = path.substr(0, path.find_first_of("/."));
  return top == "sitecustomize" || top == "usercustomize";
}

}  // namespace sealift::bundle
