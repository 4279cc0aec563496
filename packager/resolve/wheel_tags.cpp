// SPDX-License-Identifier: Apache-2.0
// Ranks wheels by tag; see wheel_tags.hpp. Order: packaging.tags' cpython_tags, then compatible_tags.
#include "packager/resolve/wheel_tags.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "bundle/core/text_parts.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

using bundle::GlibcVersion;
using bundle::split;

namespace {

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Position of an interpreter and ABI tag for CPython 3.MINOR; -1 when it does not run there.
int group_of(std::string_view python, std::string_view abi, int minor) {
  const std::string own = "cp3" + std::to_string(minor);
  if (python == own) return abi == own ? 0 : abi == "abi3" ? 1 : abi == "none" ? 2 : -1;
  if (python.starts_with("cp3") && abi == "abi3") {
    const std::optional<int> older = number(python.substr(3));
    return older && *older >= 2 && *older < minor ? 3 + (minor - *older) : -1;
  }
  if (abi != "none") return -1;
  if (python == "py3" + std::to_string(minor)) return 100;
  if (python == "py3") return 101;
  const std::optional<int> older = python.starts_with("py3") ? number(python.substr(3)) : std::nullopt;
  return older && *older < minor ? 101 + (minor - *older) : -1;
}

// "10b": the number 10, then "b"; a number that is too long for one is the highest.
BuildTag build_of(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) return {};
  BuildTag build{.number = 0, .rest = std::string(text.substr(digits))};
  if (std::from_chars(text.data(), text.data() + digits, *build.number).ec != std::errc())
    build.number = std::numeric_limits<std::uint64_t>::max();
  return build;
}

constexpr int kLinux = 1000, kAny = 2000;

struct PlatformFit {
  int distance;
  GlibcVersion glibc;
};

std::optional<PlatformFit> platform_fit(std::string_view tag, const bundle::Target& target) {
  if (tag == "any") return PlatformFit{kAny, {}};
  if (!tag.ends_with("_" + target.arch)) return std::nullopt;
  tag.remove_suffix(target.arch.size() + 1);
  if (tag == "linux") return PlatformFit{kLinux, {}};
  GlibcVersion glibc;
  if (tag == "manylinux1")
    glibc = {2, 5};
  else if (tag == "manylinux2010")
    glibc = {2, 12};
  else if (tag == "manylinux2014")
    glibc = {2, 17};
  else if (tag.starts_with("manylinux_")) {
    const std::vector<std::string_view> parts = split(tag, '_');
    const std::optional<int> major = parts.size() == 3 ? number(parts[1]) : std::nullopt;
    const std::optional<int> minor = parts.size() == 3 ? number(parts[2]) : std::nullopt;
    if (!major || !minor || *major < 0 || *minor < 0) return std::nullopt;
    glibc = {static_cast<unsigned>(*major), static_cast<unsigned>(*minor)};
  } else {
    return std::nullopt;
  }
  if (glibc.major != target.glibc.major || target.glibc < glibc) return std::nullopt;
  return PlatformFit{static_cast<int>(target.glibc.minor - glibc.minor), glibc};
}

}  // namespace

std::optional<WheelFit> fit_wheel(std::string_view file_name, std::string_view python, const bundle::Target& target) {
  const std::optional<bundle::WheelName> name = bundle::parse_wheel_name(file_name);
  const std::optional<int> minor = python.starts_with("3.") ? number(python.substr(2)) : std::nullopt;
  if (!name || !minor) return std::nullopt;
  std::optional<WheelFit> best;
  bool unbound = false;             // one of its tags needs no glibc at all
  std::optional<GlibcVersion> low;  // a wheel with several tags promises all of them, so it needs the lowest
  for (const std::string_view python_tag : split(name->python_tag, '.'))
    for (const std::string_view abi : split(name->abi_tag, '.'))
      for (const std::string_view platform : split(name->platform_tag, '.')) {
        const int group = group_of(python_tag, abi, *minor);
        const std::optional<PlatformFit> fit = platform_fit(platform, target);
        if (group < 0 || !fit) continue;
        const bool any = fit->distance == kAny;
        const WheelRank rank{.group = any ? kAny + group : group, .platform = fit->distance};
        if (!best || rank < best->rank) best = WheelFit{.rank = rank, .build = {}, .glibc = {}};
        if (fit->glibc == GlibcVersion{})
          unbound = true;
        else if (!low || fit->glibc < *low)
          low = fit->glibc;
      }
  if (best && !unbound && low) best->glibc = *low;
  if (best) best->build = build_of(name->build);
  return best;
}

std::optional<GlibcVersion> glibc_wanted(std::string_view file_name, std::string_view python, bundle::Target target) {
  target.glibc.minor = 1'000'000;
  const std::optional<WheelFit> fit = fit_wheel(file_name, python, target);
  return fit ? std::optional(fit->glibc) : std::nullopt;
}

}  // namespace sealift::packager
