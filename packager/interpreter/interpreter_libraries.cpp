// SPDX-License-Identifier: Apache-2.0
// Ask what is needed, put it into lib/, change search paths; see interpreter_libraries.hpp.
#include "packager/interpreter/interpreter_libraries.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "packager/host/own_program.hpp"
#include "packager/host/process.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// A copy with the search path `rpath`: as DT_RPATH, so that it also applies to what is loaded later; empty removes it.
fs::path with_rpath(const fs::path& patchelf, const fs::path& file, const fs::path& copy, const std::string& rpath) {
  fs::create_directories(copy.parent_path());
  fs::copy_file(fs::canonical(file), copy);
  fs::permissions(copy, fs::perms::owner_write, fs::perm_options::add);
  if (rpath.empty())
    run_checked({patchelf.string(), "--remove-rpath", copy.string()});
  else
    run_checked({patchelf.string(), "--force-rpath", "--set-rpath", rpath, copy.string()});
  return copy;
}

bool has_search_path(const fs::path& file) {
  bundle::FileSource source(fs::canonical(file));
  const std::optional<bundle::ElfFile> elf = bundle::read_elf(source);
  return elf && !(elf->rpath.empty() && elf->runpath.empty());
}

fs::path find_patchelf(const fs::path& given) {
  const fs::path patchelf = given.empty() ? find_program("patchelf") : given;
  if (patchelf.empty() || !fs::exists(patchelf))
    throw Error(ErrorCode::Missing, {.what = "patchelf, which makes the interpreter find its libraries, is not there",
                                     .where = patchelf.empty() ? "PATH" : patchelf.string(),
                                     .next = "install it (Debian: apt install patchelf), or name it with --patchelf"});
  return patchelf;
}

// An interpreter of another system, whose root lies in a folder here, finds its libraries there.
std::string system_remedy(const Interpreter& interpreter, const std::string& library) {
  const fs::path root = interpreter.prefix.parent_path();
  if (interpreter.prefix.filename() != "usr" || root == root.root_path()) return {};
  for (const fs::path& folder : NativeResolver::folders_of(root, machine_arch()))
    if (std::error_code ignored; fs::exists(folder / library, ignored))
      return "; [target] system = " + toml_quoted(root.string()) + " takes it from there";
  return {};
}

}  // namespace

void carry_libraries(Tree& tree, const Interpreter& interpreter, NativeResolver& resolver, bundle::GlibcVersion target,
                     const fs::path& given, const fs::path& scratch, bundle::Progress& progress) {
  const std::string executable = "bin/python" + interpreter.minor;
  if (const std::vector<std::string> missing = resolver.add(interpreter.executable, executable); !missing.empty())
    throw Error(ErrorCode::Missing, {.what = "a library of the interpreter is not on this machine",
                                     .where = interpreter.executable.string(),
                                     .got = missing.front(),
                                     .next = "install it, or use another interpreter"});
  // PyTorch's wheels rely on these, and a minimal target has none of them.
  for (const char* library : {"libstdc++.so.6", "libgcc_s.so.1", "libz.so.1"})
    if (!resolver.is_of_host(library) && !resolver.offer_library(library, target))
      progress.warn(fmt::format(
          "{} is not carried: there is none here that needs no glibc newer than {}; name the root of a system that has "
          "one, [target] system = \"DIR\", or say that the targets have it: [target] host_libraries = [\"{}\"]",
          library, target.text(), library));
  std::vector<std::string> incomplete;
  for (const auto& [place, item] : tree) {
    if (item.link || item.source.empty() || !place.ends_with(".so")) continue;
    const std::vector<std::string> missing = resolver.add(item.source, place);
    if (missing.empty()) continue;
    progress.warn(fmt::format("{} is left out: {} is not on this machine{}", place, missing.front(),
                              system_remedy(interpreter, missing.front())));
    incomplete.push_back(place);
  }
  for (const std::string& place : incomplete) tree.erase(place);
  for (const auto& [name, file] : resolver.closure().libraries)
    tree["lib/" + fs::path(name).filename().string()] = {.source = file};
  const fs::path patchelf = find_patchelf(given);
  TreeItem& program = tree["libexec/python" + interpreter.minor];
  program.source = with_rpath(patchelf, program.source, scratch / "patched/python", "$ORIGIN/../lib");
  // An interpreter with a prefix of its own may have been built with search paths that only exist on this machine, and
  // a DT_RUNPATH among them would disable the executable's. A distribution's files are left as they are.
  if (interpreter.prefix == "/usr") return;
  for (auto& [place, item] : tree) {
    const bool own = !item.link && !item.source.lexically_relative(interpreter.prefix).string().starts_with("..");
    if (own && !item.source.empty() && place.find(".so") != place.npos && has_search_path(item.source))
      item.source = with_rpath(patchelf, item.source, scratch / "patched" / place, "");
  }
}

}  // namespace sealift::packager
