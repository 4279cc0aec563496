// SPDX-License-Identifier: Apache-2.0
// See target_profile.hpp. The bounds are wide enough for every machine that can run today's wheels, and narrow enough
// to catch a lost digit.
#include "packager/tables/target_profile.hpp"

#include <algorithm>
#include <set>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/manifest/target_profile.hpp"
#include "sealift/bundle/native/host_libraries.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::SafePath;

namespace {

constexpr std::uint64_t kMaxProfile = std::uint64_t{64} << 10;

struct ShippedProfile {
  const char* name;
  const char* text;
};
const ShippedProfile kShipped[] = {
#include "packager/tables/shipped_profiles.inc"  // made from profiles/*.toml by CMakeLists.txt, sorted by file name
};

std::string profile_text(TomlTable& table, const std::string& key, const std::string& text) {
  if (!bundle::is_profile_text(text))
    table.refuse(key, "a text of a target is not acceptable",
                 "1 to " + std::to_string(bundle::kMaxProfileText) + " printable characters without quotes",
                 SafePath::printable(text));
  return text;
}

bool starts_dotted(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  return dot != text.npos && dot > 0 && digit(0) && digit(dot - 1) && digit(dot + 1);
}

// A dotted number that is at least `low` and below `high`.
struct Range {
  const char* what;
  const char* low;
  const char* high;
};
void check_range(TomlTable& table, const std::string& key, const std::string& text, const Range& range) {
  const std::string expected = std::string(range.low) + " or newer, and below " + range.high;
  if (!starts_dotted(text)) table.refuse(key, std::string("this is not ") + range.what, expected, text);
  const bundle::Version version = bundle::Version::leading(text);
  if (version < bundle::Version::leading(range.low))
    table.refuse(key, std::string(range.what) + " is too old", expected, text);
  if (version >= bundle::Version::leading(range.high))
    table.refuse(key, std::string(range.what) + " is newer than any", expected, text);
}

void read_version(TomlTable& table, const std::string& key, std::string& value, const Range& range) {
  if (!table.has(key)) return;
  value = profile_text(table, key, table.string(key));
  check_range(table, key, value, range);
}

void read_texts(TomlTable& table, const std::string& key, std::vector<std::string>& values) {
  if (!table.has(key)) return;
  values = table.strings(key);
  if (values.size() > bundle::kMaxProfileItems)
    table.refuse(key, "a list of a target is too long", "at most " + std::to_string(bundle::kMaxProfileItems),
                 std::to_string(values.size()));
  for (const std::string& value : values) profile_text(table, key, value);
}

void read_glibc(TomlTable& table, bundle::Target& target) {
  if (!table.has("glibc")) return;
  const std::string text = table.string("glibc");
  const std::optional<bundle::GlibcVersion> version = bundle::parse_glibc(text);
  if (!version || *version < bundle::GlibcVersion{2, 17} || *version >= bundle::GlibcVersion{2, 100})
    table.refuse("glibc", "the target's glibc is not a version that wheels are made for",
                 "2.17 or newer, and below 2.100, like 2.28", SafePath::printable(text),
                 "on the target, `ldd --version` prints it");
  target.glibc = *version;
}

void read_cpu(TomlTable& table, bundle::Target& target) {
  if (!table.has("cpu")) return;
  target.cpu = table.string("cpu");
  if (target.arch != "x86_64" && !target.arch.empty())
    table.refuse("cpu", "only x86-64 has levels of processors", "no cpu for " + SafePath::printable(target.arch),
                 SafePath::printable(target.cpu));
  constexpr std::string_view kLevels[] = {"x86-64-v1", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  if (std::find(std::begin(kLevels), std::end(kLevels), target.cpu) == std::end(kLevels))
    table.refuse("cpu", "this is not a level of x86-64", "x86-64-v1 to x86-64-v4", SafePath::printable(target.cpu));
}

void read_arch(TomlTable& table, bundle::Target& target) {
  if (!table.has("arch")) return;
  target.arch = table.string("arch");
  if (!bundle::is_plain_name(target.arch) || target.arch.size() > bundle::kMaxProfileText)
    table.refuse("arch", "this is not an architecture", "as `uname -m` prints it, like x86_64",
                 SafePath::printable(target.arch));
}

void read_pythons(TomlTable& table, bundle::Target& target) {
  read_texts(table, "python", target.python);
  for (const std::string& version : target.python)
    if (table.has("python")) check_range(table, "python", version, {"a Python version", "3.0", "3.100"});
}

// Of a folder on this machine: the names of its libraries, links among them. Not copies of what Python and C++ programs
// want (libssl, libstdc++), which a vendor's folder often has and no program finds there.
std::set<std::string> libraries_in(const fs::path& folder) {
  constexpr std::size_t kMostNames = 10'000;
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator there(folder, error); !error && there != fs::directory_iterator(); there.increment(error))
    if (const std::string name = there->path().filename().string();
        name.find(".so") != name.npos && bundle::fault_of_host_library(name) == nullptr &&
        !bundle::is_interpreter_library(name) && names.size() < kMostNames)
      names.insert(name);
  return names;
}

}  // namespace

void read_target_keys(TomlTable& table, bundle::Target& target) {
  const auto version = [&](const char* key, std::string& value, const Range& range) {
    table.attempt([&] { read_version(table, key, value, range); });
  };
  table.attempt([&] { read_arch(table, target); });
  table.attempt([&] { read_glibc(table, target); });
  version("glibcxx", target.glibcxx, {"a GLIBCXX version", "3.4.19", "3.4.100"});
  version("cxxabi", target.cxxabi, {"a CXXABI version", "1.3.7", "1.3.100"});
  version("kernel", target.kernel, {"a kernel", "3.10", "20.0"});
  version("driver", target.driver, {"a driver of NVIDIA's", "300.0", "2000.0"});
  table.attempt([&] { read_cpu(table, target); });
  table.attempt([&] {
    if (table.has("distribution"))
      target.distribution = profile_text(table, "distribution", table.string("distribution"));
  });
  table.attempt([&] { read_texts(table, "flags", target.flags); });
  table.attempt([&] { read_texts(table, "gpus", target.gpus); });
  table.attempt([&] { read_texts(table, "crypto", target.crypto); });
  table.attempt([&] { read_pythons(table, target); });
  table.attempt([&] {
    if (table.has("free_gib")) target.free_gib = table.integer("free_gib");
  });
}

std::vector<std::string> read_overruled(TomlTable& table) {
  const std::set<std::string> known = {"cpu", "driver", "gpu", "kernel", "space"};
  std::vector<std::string> checks = table.strings("overrule");
  for (const std::string& check : checks)
    if (!known.contains(check))
      table.refuse("overrule", "there is no such check of the target", "cpu, driver, gpu, kernel or space",
                   SafePath::printable(check));
  std::sort(checks.begin(), checks.end());
  checks.erase(std::unique(checks.begin(), checks.end()), checks.end());
  return checks;
}

std::vector<std::string> read_host_libraries(TomlTable& table, const fs::path& folder) {
  std::set<std::string> names;
  for (const std::string& said : table.strings("host_libraries")) {
    if (said.find('/') != said.npos) {
      const std::set<std::string> inside = libraries_in(folder / said);
      if (inside.empty())
        table.refuse("host_libraries", "this folder has no libraries on this machine", "a folder with lib*.so files",
                     said, "name the libraries themselves: \"libascendcl.so\", \"libhccl*.so\"");
      names.insert(inside.begin(), inside.end());
    } else if (const char* fault = bundle::fault_of_host_library(said)) {
      table.refuse("host_libraries", fault, "like \"libascendcl.so\", \"libhccl*.so\", or a folder", said);
    } else {
      names.insert(said);
    }
  }
  return {names.begin(), names.end()};
}

bundle::Target parse_profile(std::string_view text, const fs::path& where) {
  const TomlValue document = parse_toml(text, where, ErrorCode::Usage);
  TomlTable table(document, where, ErrorCode::Usage);
  if (const std::uint64_t format = table.integer("format"); format != bundle::kProfileFormat)
    throw Error(ErrorCode::CannotCheck, {.what = "the profile is of a format that this version does not know",
                                         .where = where.string(),
                                         .expected = std::to_string(bundle::kProfileFormat),
                                         .got = std::to_string(format),
                                         .next = "use the sealift-pack that belongs to the sealift-install"});
  bundle::Target target{.arch = table.string("arch")};
  read_target_keys(table, target);
  const std::string check = table.string_or("check", bundle::profile_check(target));
  table.done();  // first, so that a misspelt key is reported as one
  if (check != bundle::profile_check(target))
    table.refuse("check", "the profile's lines do not match its check: one of them is mistyped",
                 "check = \"" + SafePath::printable(check) + "\"",
                 "lines whose check is \"" + bundle::profile_check(target) + "\"",
                 "compare every line with what `sealift-install probe` printed; leave out `check` only where you "
                 "changed a line on purpose");
  return target;
}

bundle::Target read_profile(const fs::path& file) {
  return parse_profile(bundle::read_text(file, kMaxProfile), file);
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> names;
  for (const ShippedProfile& profile : kShipped) names.emplace_back(profile.name);
  return names;
}

bundle::Target find_profile(const std::string& name, const fs::path& folder) {
  for (const ShippedProfile& profile : kShipped)
    if (name == profile.name) return parse_profile(profile.text, "the shipped profile " + name);
  const fs::path file = fs::absolute(folder / name).lexically_normal();
  std::error_code unreadable;  // such as a name that is too long
  if (fs::is_regular_file(file, unreadable)) return read_profile(file);
  std::string names;
  for (const ShippedProfile& profile : kShipped) names += (names.empty() ? "" : ", ") + std::string(profile.name);
  throw Error(ErrorCode::Missing, {.what = "there is no such target profile",
                                   .where = SafePath::printable(file.string()),
                                   .expected = "a file, or one of " + names,
                                   .got = SafePath::printable(name),
                                   .next = "on the target, `sealift-install probe` prints one"});
}

}  // namespace sealift::packager
