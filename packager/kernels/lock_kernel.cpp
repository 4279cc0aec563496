// SPDX-License-Identifier: Apache-2.0
// Loader, listing, variant, files, metadata; see lock_kernel.hpp.
#include "packager/kernels/lock_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "packager/kernels/kernel_files.hpp"
#include "packager/kernels/kernel_metadata.hpp"
#include "packager/models/hub.hpp"
#include "packager/models/lock_model.hpp"
#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;
using bundle::Version;

namespace {

// Where the loader's own rules changed.
constexpr Version kReadsLocalKernels{.minor = 13};             // before: nothing that is offline and names a version
constexpr Version kKindOfKernels{.minor = 14};                 // repositories of a kind of their own
constexpr Version kOfflineFromCache{.minor = 15, .patch = 1};  // before: LOCAL_KERNELS alone
constexpr Version kFollowsKernels{.minor = 17};                // a kernel may need another one

KernelSystem system_of(const std::vector<LockedWheel>& wheels, const std::string& arch) {
  const std::optional<KernelSystem> system = kernel_system(wheels, arch);
  if (!system)
    throw Error(ErrorCode::Missing, {.what = "kernels are carried, and nothing loads them",
                                     .where = "[[kernel]] of the job file",
                                     .expected = "the package kernels among the requirements",
                                     .next = "add \"kernels>=0.15.1\" to requirements, or leave [[kernel]] out"});
  if (system->loader < kReadsLocalKernels)
    throw Error(ErrorCode::Missing,
                {.what = "this release of the package kernels loads nothing without a network",
                 .where = "[[kernel]] of the job file",
                 .expected = "kernels 0.13 or newer",
                 .got = "kernels " + system->loader.text(),
                 .next = "require \"kernels>=0.15.1\", with a release of what asks for an older one that takes it "
                         "(transformers from 5.13 on); or leave [[kernel]] and kernels out"});
  return *system;
}

std::vector<std::string> variants_of(const HubListing& listing) {
  std::set<std::string> names;
  for (const HubFile& file : listing.files) {
    if (!file.path.starts_with("build/")) continue;
    const std::size_t end = file.path.find('/', 6);
    if (end != file.path.npos) names.insert(file.path.substr(6, end - 6));
  }
  return {names.begin(), names.end()};
}

std::string chosen(const HubListing& listing, const ModelSpec& spec, const KernelSystem& system) {
  const std::vector<std::string> variants = variants_of(listing);
  if (std::optional<std::string> variant = choose_variant(variants, system)) return *std::move(variant);
  constexpr std::size_t kMostTold = 60;
  std::string got;
  for (std::size_t i = 0; i < std::min(variants.size(), kMostTold); ++i) got += "\n    " + variants[i];
  if (variants.size() > kMostTold) got += fmt::format("\n    and {} more", variants.size() - kMostTold);
  throw Error(ErrorCode::Platform, {.what = "no variant of a kernel fits the environment",
                                    .where = spec.repo + " at " + spec.revision,
                                    .expected = "one for " + system.text(),
                                    .got = variants.empty() ? "no variant at all (folders below build/)" : got,
                                    .next = "name another revision of it, or require a torch that it was built for"});
}

bool is_bytecode(const std::string& path) {
  return path.ends_with(".pyc") || path.find("/__pycache__/") != path.npos;
}

// Without files that are not of the variant.
void keep_variant(HubListing& listing, const std::string& variant) {
  const std::string folder = "build/" + variant + "/";
  std::erase_if(listing.files,
                [&](const HubFile& file) { return !file.path.starts_with(folder) || is_bytecode(file.path); });
}

void bring(LockedKernel& kernel, HubListing& listing, const Cache& cache, bundle::Progress& progress,
           const FetchOptions& options) {
  pin_small_files(kernel.spec, listing, cache, options);
  for (const HubFile& file : listing.files)
    kernel.files.push_back({.path = file.path, .size = file.size, .sha256 = file.sha256.value()});
  std::vector<Content> away = contents_of(kernel);
  std::erase_if(away, [&](const Content& content) {
    return !std::holds_alternative<FromServer>(content.origin) || cache.contains(content.sha256);
  });
  if (!away.empty()) fetch(downloads_of(away), cache, progress, options);
}

// A file of the variant, by its path in it.
const LockedFile* find_file(const LockedKernel& kernel, const std::string& path) {
  const std::string whole = "build/" + kernel.variant + "/" + path;
  for (const LockedFile& file : kernel.files)
    if (file.path == whole) return &file;
  return nullptr;
}

[[noreturn]] void refuse_variant(const LockedKernel& kernel, const std::string& what, const std::string& expected,
                                 const std::string& got, const std::string& next) {
  throw Error(ErrorCode::Format, {.what = what,
                                  .where = kernel.spec.repo + " at " + kernel.commit + ", build/" + kernel.variant,
                                  .expected = expected,
                                  .got = got,
                                  .next = next});
}

// "kernels-community/flash-attn2" -> "flash_attn2", as the loader names the module.
std::string module_of(const ModelSpec& spec) {
  std::string name = spec.repo.substr(spec.repo.find('/') + 1);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// What a kernel needs is carried only where the job says so, as everything is.
void require_needed(const LockedKernel& kernel, const KernelMetadata& metadata, const std::vector<ModelSpec>& asked) {
  for (const KernelNeed& need : metadata.kernels) {
    const auto is_it = [&](const ModelSpec& spec) { return spec.repo == need.repo && spec.revision == need.revision; };
    if (std::any_of(asked.begin(), asked.end(), is_it)) continue;
    refuse_variant(kernel, "a kernel needs another one, which is not carried", need.repo + " at " + need.revision, "",
                   fmt::format("add [[kernel]] with repo = {} and revision = {}", toml_quoted(need.repo),
                               toml_quoted(need.revision)));
  }
}

void require_loadable(const LockedKernel& kernel, const KernelSystem& system, const Cache& cache,
                      const std::vector<LockedWheel>& wheels, const std::vector<ModelSpec>& asked,
                      bundle::Progress& progress) {
  if (find_file(kernel, "__init__.py") == nullptr &&
      find_file(kernel, module_of(kernel.spec) + "/__init__.py") == nullptr)
    refuse_variant(kernel, "a kernel's variant has no module", "__init__.py", "", "name another revision of it");
  const LockedFile* const file = find_file(kernel, "metadata.json");
  if (file == nullptr && system.loader >= kKindOfKernels)
    refuse_variant(kernel, "a kernel's variant has no metadata.json, which its loader reads",
                   "metadata.json, as kernels has wanted it since 0.14", "kernels " + system.loader.text(),
                   "name a newer revision of it, or constrain kernels<0.14");
  if (file == nullptr) return;
  const KernelMetadata metadata = read_kernel_metadata(cache.path(file->sha256), kernel.spec.repo + "/" + file->path);
  if (Version::leading(metadata.loader) > system.loader)
    refuse_variant(kernel, "a kernel wants a newer loader", "kernels " + metadata.loader + " or newer",
                   "kernels " + system.loader.text(), "require \"kernels>=" + metadata.loader + "\"");
  if (system.loader >= kFollowsKernels) require_needed(kernel, metadata, asked);
  for (const std::string& package : metadata.packages)
    if (std::none_of(wheels.begin(), wheels.end(), [&](const LockedWheel& wheel) { return wheel.name == package; }))
      progress.warn(
          fmt::format("the kernel {} asks for the package {} when it is loaded, which is not among the "
                      "requirements (add it)",
                      kernel.spec.repo, package));
}

// LOCAL_KERNELS has one place for a repository, whatever version of it is asked for.
void refuse_second_revision(const std::vector<LockedKernel>& kernels, const KernelSystem& system) {
  std::map<std::string, std::string> seen;
  for (const LockedKernel& kernel : kernels)
    if (const auto [first, fresh] = seen.emplace(kernel.spec.repo, kernel.spec.revision);
        kernel.named_by_variable && !fresh)
      throw Error(ErrorCode::Usage,
                  {.what = "this loader takes one revision of a kernel when it is offline",
                   .where = kernel.spec.repo,
                   .expected = "one [[kernel]] of it, or kernels 0.15.1 or newer",
                   .got = first->second + " and " + kernel.spec.revision + ", for kernels " + system.loader.text(),
                   .next = "leave one of them out, or require \"kernels>=0.15.1\""});
}

// One variable leads such a loader to all of them.
void refuse_too_many(const std::vector<LockedKernel>& kernels, const KernelSystem& system) {
  const bundle::Variables variables = kernel_variables(kernels);
  const auto local = variables.find("LOCAL_KERNELS");
  if (local == variables.end()) return;
  if (bundle::fault_of_carried_variable(local->first, local->second) == nullptr) return;
  throw Error(ErrorCode::Usage,
              {.what = "one variable leads this loader to its kernels, and it cannot name so many",
               .where = "[[kernel]] of the job file",
               .expected = "a value of LOCAL_KERNELS that a bundle can carry, of 300 bytes",
               .got = fmt::format("{} bytes for {} kernels, for kernels {}", local->second.size(), kernels.size(),
                                  system.loader.text()),
               .next = "require \"kernels>=0.15.1\", which works without the variable, or carry fewer kernels"});
}

}  // namespace

std::vector<LockedKernel> lock_kernels(const std::vector<ModelSpec>& kernels, const std::vector<LockedWheel>& wheels,
                                       const std::string& arch, const Cache& cache, bundle::Progress& progress,
                                       const FetchOptions& options) {
  if (kernels.empty()) return {};
  const KernelSystem system = system_of(wheels, arch);
  std::vector<LockedKernel> locked;
  for (const ModelSpec& asked : kernels) {
    LockedKernel kernel{.spec = asked, .commit = {}, .variant = {}, .files = {}};
    kernel.spec.kernel = system.loader >= kKindOfKernels;
    kernel.named_by_variable = system.loader < kOfflineFromCache;
    HubListing listing = list_repository(kernel.spec, options);
    kernel.commit = listing.commit;
    kernel.variant = chosen(listing, kernel.spec, system);
    keep_variant(listing, kernel.variant);
    bring(kernel, listing, cache, progress, options);
    require_loadable(kernel, system, cache, wheels, kernels, progress);
    progress.note(fmt::format("locked the kernel {} at {}: {}, {} files ({})", kernel.spec.repo, kernel.spec.revision,
                              kernel.variant, kernel.files.size(), bundle::human_size(kernel.size())));
    locked.push_back(std::move(kernel));
  }
  refuse_second_revision(locked, system);
  refuse_too_many(locked, system);
  return locked;
}

}  // namespace sealift::packager
