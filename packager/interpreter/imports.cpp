// SPDX-License-Identifier: Apache-2.0
// Names from the interpreter's tree and from directories of wheels; see imports.hpp.
#include "packager/interpreter/imports.hpp"

#include <algorithm>

#include "packager/network/remote_file.hpp"
#include "sealift/bundle/archive/zip.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"
#include "sealift/nearest.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

// The module that a file below a folder of modules belongs to: "a/b.py" and "a.cpython-311-x86_64-linux-gnu.so" are
// a's.
std::string module_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash != path.npos) return path.substr(0, slash);
  return path.ends_with(".py") || path.ends_with(".so") ? path.substr(0, path.find('.')) : std::string();
}

void add_modules(bundle::ByteSource& wheel, std::set<std::string>& modules) {
  const bundle::ZipReader zip(wheel);
  for (const bundle::ZipMember& member : zip.members()) {
    std::string path = member.name;
    for (const char* folder : {".data/purelib/", ".data/platlib/"})
      if (const std::size_t at = path.find(folder); at != path.npos && path.find('/') == at + 5)
        path.erase(0, at + std::string_view(folder).size());
    modules.insert(module_of(path));
  }
}

// False when that cannot be done.
bool look_into(const LockedWheel& wheel, const Cache& cache, const HttpLogins& logins, std::set<std::string>& modules) {
  try {
    if (cache.contains(wheel.sha256)) {
      bundle::FileSource file(cache.path(wheel.sha256));
      add_modules(file, modules);
      return true;
    }
    if (wheel.url.empty() || wheel.size == 0) return false;
    RemoteFile remote(wheel.url, wheel.size, logins);
    add_modules(remote, modules);
    return true;
  } catch (const Error&) {  // `create` will fetch it, check it, and say what is wrong
    return false;
  }
}

std::string top_of(const std::string& module) {
  return module.substr(0, module.find('.'));
}

}  // namespace

std::set<std::string> own_modules(const Interpreter& interpreter, const Tree& tree,
                                  const std::vector<LockedProgram>& programs) {
  std::set<std::string> modules(interpreter.builtin_modules.begin(), interpreter.builtin_modules.end());
  const std::string library = interpreter.stdlib.lexically_relative(interpreter.prefix).string() + "/";
  const std::string packages = interpreter.site_packages() + "/";
  const auto add = [&](const std::string& path) {
    for (const std::string& folder : {packages, library + "lib-dynload/", library})
      if (path.starts_with(folder)) modules.insert(module_of(path.substr(folder.size())));
  };
  for (const auto& [path, item] : tree) add(path);
  for (const LockedProgram& program : programs) add(program.into);
  return modules;
}

void require_imports(const std::vector<std::string>& imports, std::set<std::string> own,
                     const std::vector<LockedWheel>& wheels, const Cache& cache, const HttpLogins& logins,
                     const std::filesystem::path& job_file, bundle::Progress& progress) {
  std::set<std::string> projects;
  for (const LockedWheel& wheel : wheels) projects.insert(bundle::normalized_project_name(wheel.name));
  std::vector<std::string> missing;
  for (const std::string& module : imports)
    if (!own.contains(top_of(module)) && !projects.contains(bundle::normalized_project_name(top_of(module))))
      missing.push_back(module);
  if (missing.empty()) return;
  std::string unseen;
  for (const LockedWheel& wheel : wheels)
    if (!look_into(wheel, cache, logins, own)) unseen += (unseen.empty() ? "" : ", ") + wheel.file_name;
  std::erase_if(missing, [&](const std::string& module) { return own.contains(top_of(module)); });
  if (missing.empty()) return;
  if (!unseen.empty())
    return progress.warn("imports: " + missing.front() +
                         " is in nothing that could be looked into; not seen: " + unseen);
  own.insert(projects.begin(), projects.end());
  const std::string near = nearest(top_of(missing.front()), own);
  throw Error(ErrorCode::Usage, {.what = "no package brings a module that the self-test is to import",
                                 .where = job_file.string() + ", key 'python.imports'",
                                 .expected = near.empty() ? "modules of the standard library or of a required package"
                                                          : "'" + near + "' perhaps",
                                 .got = missing.front(),
                                 .next = "correct its spelling, or require the package that brings it"});
}

}  // namespace sealift::packager
