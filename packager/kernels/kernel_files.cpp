// SPDX-License-Identifier: Apache-2.0
// Places of a kernel's files; see kernel_files.hpp. Sources: kernels/_versions.py, utils.py (0.15), install.py and
// resolver.py (0.17); huggingface_hub's _snapshot_download.py, which asks for the whole repository where trees/ is.
#include "packager/kernels/kernel_files.hpp"

#include "packager/models/hub.hpp"

namespace sealift::packager {

namespace {

std::string repository_folder(const ModelSpec& spec) {
  std::string name = spec.repo;
  if (const std::size_t slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  return (spec.kernel ? "hub/kernels--" : "hub/models--") + name;
}

std::string snapshot_folder(const LockedKernel& kernel) {
  return repository_folder(kernel.spec) + "/snapshots/" + kernel.commit;
}

Content file_content(const LockedKernel& kernel, const LockedFile& file) {
  const std::string into = snapshot_folder(kernel) + "/" + file.path;
  return {.kind = Content::Kind::Program,
          .name = kernel.spec.repo + "/" + file.path,
          .owner = "the kernel " + kernel.spec.repo,
          .entry = "files/" + into,
          .into = into,
          .size = file.size,
          .sha256 = file.sha256,
          .origin = FromServer{.url = url_of(kernel.spec, kernel.commit, file.path), .bearer = token_for(kernel.spec)}};
}

Content ref_content(const LockedKernel& kernel) {
  const std::string into = repository_folder(kernel.spec) + "/refs/" + kernel.spec.revision;
  return {.name = kernel.spec.repo + "/" + kernel.spec.revision,
          .owner = "the kernel " + kernel.spec.repo,
          .entry = "files/" + into,
          .into = into,
          .size = kernel.commit.size(),
          .sha256 = bundle::sha256(bundle::as_bytes(kernel.commit)),
          .origin = FromText{kernel.commit}};
}

}  // namespace

std::vector<Content> contents_of(const LockedKernel& kernel) {
  std::vector<Content> contents;
  for (const LockedFile& file : kernel.files) contents.push_back(file_content(kernel, file));
  if (kernel.spec.revision != kernel.commit) contents.push_back(ref_content(kernel));
  return contents;
}

bundle::Variables kernel_variables(const std::vector<LockedKernel>& kernels) {
  if (kernels.empty()) return {};
  bundle::Variables variables = {{"KERNELS_CACHE", "${PREFIX}/hub"}};
  std::string local;
  for (const LockedKernel& kernel : kernels)
    if (kernel.named_by_variable)
      local += (local.empty() ? "" : ":") + kernel.spec.repo + "=${PREFIX}/" + snapshot_folder(kernel);
  if (!local.empty()) variables.emplace("LOCAL_KERNELS", local);
  return variables;
}

}  // namespace sealift::packager
