// SPDX-License-Identifier: Apache-2.0
// A closed list of names, so that what else lies in the folder (/usr, perhaps) stays there; see sdk_tree.hpp.
#include "packager/files/sdk_tree.hpp"

#include <algorithm>

#include "packager/host/own_program.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxCoreFile = std::uint64_t{4} << 20;
constexpr std::size_t kMaxCoreFiles = 2000;
constexpr const char* kCore[] = {"include/sealift/train.hpp", "include/sealift/train_compiled.cpp",
                                 "include/sealift/safetensors_values.hpp", "include/sealift/safetensors.hpp",
                                 "include/sealift/strict_json.hpp"};
constexpr const char* kVersionFile = "sealift-config-version.cmake";
// Without sealift-built.cmake, which names folders of the machine that built it.
constexpr const char* kPackage[] = {"sealift-config.cmake", kVersionFile, "sealift_train.cmake", "FindLibTorch.cmake"};
constexpr const char* kCudaPackage = "sealift_train_cuda.cmake";  // of a build that knew CUDA
constexpr const char* kLibraryFolders[] = {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"};

[[noreturn]] void refuse_missing(const fs::path& what) {
  throw Error(ErrorCode::Missing,
              {.what = "the C++ core that [sdk] carries is not there, or not whole",
               .where = what.string(),
               .expected = "an installation of Sealift's headers",
               .next = "cmake --install BUILD --component headers --prefix DIR, then [sdk] from = \"DIR\""});
}

void take(const fs::path& root, const std::string& path, Tree& tree) {
  const fs::path file = root / path;
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(file, error))) refuse_missing(file);
  if (fs::file_size(file) > kMaxCoreFile)
    throw Error(ErrorCode::Format, {.what = "a file of the C++ core is larger than any that belongs to it",
                                    .where = file.string(),
                                    .expected = "at most 4 MiB",
                                    .next = "name an installation of Sealift with [sdk] from"});
  tree[path] = {.source = file};
}

void take_headers(const fs::path& root, const std::string& folder, Tree& tree) {
  std::error_code error;
  std::size_t count = 0;
  for (fs::recursive_directory_iterator it(root / folder, error), end; !error && it != end; it.increment(error)) {
    if (fs::is_directory(it->symlink_status())) continue;
    if (++count > kMaxCoreFiles) refuse_missing(root / folder);
    take(root, it->path().lexically_relative(root).generic_string(), tree);
  }
  if (error || count == 0) refuse_missing(root / folder);
}

std::string package_folder(const fs::path& root) {
  for (const std::string library : kLibraryFolders)
    if (const std::string folder = library + "/cmake/sealift/"; fs::exists(root / (folder + kVersionFile)))
      return folder;
  refuse_missing(root / "lib/cmake/sealift");
}

// set(PACKAGE_VERSION "0.1.0")
std::string version_in(const fs::path& file) {
  const std::string text = bundle::read_text(file, kMaxCoreFile), key = "set(PACKAGE_VERSION \"";
  const std::size_t begin = text.find(key);
  const std::string rest = begin == text.npos ? "" : text.substr(begin + key.size(), 100);
  const std::string version = rest.substr(0, std::min(rest.find('"'), rest.size()));
  if (!bundle::is_plain_name(version)) refuse_missing(file);
  return version;
}

}  // namespace

SdkTree gather_sdk(const fs::path& from) {
  const fs::path root = from.empty() ? own_installation() : from;
  SdkTree sdk;
  for (const char* const header : kCore) take(root, header, sdk.tree);
  take_headers(root, "include/sealift/train", sdk.tree);
  const std::string package = package_folder(root);
  for (const std::string name : kPackage) take(root, package + name, sdk.tree);
  if (fs::exists(root / (package + kCudaPackage))) take(root, package + kCudaPackage, sdk.tree);
  take(root, "share/doc/sealift/LICENSE", sdk.tree);
  sdk.version = version_in(root / (package + kVersionFile));
  return sdk;
}

}  // namespace sealift::packager
