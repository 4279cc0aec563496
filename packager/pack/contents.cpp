// SPDX-License-Identifier: Apache-2.0
// One function for each kind; see contents.hpp. Models, images, Debian and rpm packages have theirs in their own rooms.
#include "packager/pack/contents.hpp"
#include "packager/native/native_file.hpp"

#include "packager/debian/apt_files.hpp"
#include "packager/images/image_files.hpp"
#include "packager/kernels/kernel_files.hpp"
#include "packager/models/model_files.hpp"
#include "packager/native/native_file.hpp"
#include "packager/rpm/rpm_files.hpp"
#include "sealift/bundle/native/host_libraries.hpp"

namespace sealift::packager {

namespace {

Content content_of(const LockedInterpreter& locked) {
  return {.kind = Content::Kind::Interpreter,
          .name = kInterpreterOwner,
          .owner = kInterpreterOwner,
          .entry = "python/cpython-" + locked.version + ".tar",
          .into = {},
          .size = locked.size,
          .sha256 = locked.sha256,
          .origin = FromLock{}};
}

Content content_of(const LockedWheel& locked) {
  const Origin origin = locked.built_from ? Origin(FromSource{locked}) : Origin(FromServer{.url = locked.url});
  return {.kind = Content::Kind::Wheel,
          .name = locked.file_name,
          .owner = locked.file_name,
          .entry = "wheels/" + locked.file_name,
          .into = {},
          .size = locked.size,
          .sha256 = locked.sha256,
          .origin = origin};
}

Content content_of(const LockedProgram& locked) {
  return {.kind = Content::Kind::Program,
          .name = locked.into,
          .owner = "the program " + locked.into,
          .entry = "programs/" + locked.into,
          .into = locked.into,
          .size = locked.size,
          .sha256 = locked.sha256,
          .executable = locked.executable,
          .origin = FromDisk{locked.source}};
}

Content content_of(const ToolchainFile& file) {
  return {.kind = Content::Kind::Program,
          .name = file.place,
          .owner = "the job's [toolchain]",
          .entry = "programs/" + file.place,  // of the C compiler: bundle::kCompilerEntry
          .into = file.place,
          .size = file.text.size(),
          .sha256 = bundle::sha256(bundle::as_bytes(file.text)),
          .executable = file.executable,
          .origin = FromText{file.text}};
}

Content content_of_host_libraries(const std::vector<std::string>& patterns) {
  const std::string text = bundle::write_host_libraries(patterns), place(bundle::kHostLibrariesPlace);
  return {.kind = Content::Kind::File,
          .name = place,
          .owner = "the job's [target] host_libraries",
          .entry = "programs/" + place,
          .into = place,
          .size = text.size(),
          .sha256 = bundle::sha256(bundle::as_bytes(text)),
          .origin = FromText{text}};
}

Content content_of(const LockedSdk& locked) {
  return {.kind = Content::Kind::Tree,
          .name = "the C++ core",
          .owner = "the C++ core ([sdk])",
          .entry = std::string(kSdkPrefix) + locked.version + ".tar",
          .into = {},
          .size = locked.size,
          .sha256 = locked.sha256,
          .origin = FromLock{}};
}

Content content_of(const bundle::Variables& variables) {
  const std::string text = bundle::write_variables(variables), place(bundle::kVariablesPlace);
  return {.kind = Content::Kind::File,
          .name = place,
          .owner = "the job's [environment]",
          .entry = "environment/variables",
          .into = place,
          .size = text.size(),
          .sha256 = bundle::sha256(bundle::as_bytes(text)),
          .origin = FromText{text}};
}

}  // namespace

std::vector<Content> contents_of(const Lock& lock) {
  std::vector<Content> contents;
  if (!lock.python.empty()) contents.push_back(content_of(lock.interpreter));
  for (const LockedWheel& wheel : lock.wheels) {
    contents.push_back(content_of(wheel));
    contents.back().startup_files = allowed_files(lock.startup_files, wheel.name);
  }
  for (const LockedProgram& program : lock.programs) contents.push_back(content_of(program));
  for (const ToolchainFile& file : toolchain_files(lock.toolchain, lock.target, lock.python))
    contents.push_back(content_of(file));
  if (!lock.host_libraries.empty()) contents.push_back(content_of_host_libraries(lock.host_libraries));
  if (lock.sdk) contents.push_back(content_of(*lock.sdk));
  if (!lock.variables.empty()) contents.push_back(content_of(lock.variables));
  for (const LockedModel& model : lock.models)
    for (Content& content : contents_of(model)) contents.push_back(std::move(content));
  for (const LockedKernel& kernel : lock.kernels)
    for (Content& content : contents_of(kernel)) contents.push_back(std::move(content));
  if (std::optional<Content> catalogue = hub_catalogue_of(lock.models)) contents.push_back(*std::move(catalogue));
  for (Content& content : contents_of(lock.images)) contents.push_back(std::move(content));
  for (Content& content : contents_of(lock.apt)) contents.push_back(std::move(content));
  for (Content& content : contents_of(lock.rpm)) contents.push_back(std::move(content));
  return contents;
}

}  // namespace sealift::packager
