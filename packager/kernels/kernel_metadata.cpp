// SPDX-License-Identifier: Apache-2.0
// Two keys of a JSON object; see kernel_metadata.hpp. Their names are those of kernels-data's own reader.
#include "packager/kernels/kernel_metadata.hpp"

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;
using bundle::Json;

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;  // it has a line for each of the variant's files

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& got = {}) {
  throw Error(ErrorCode::Format, {.what = "a kernel's metadata cannot be read: " + what,
                                  .where = where,
                                  .got = got,
                                  .next = "name another revision of it"});
}

const std::string* text_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
}

// The elements of a list; none where there is no such key.
Json list_in(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return Json::array();
  if (!found->is_array()) refuse(where, std::string("its ") + key + " is not a list");
  return *found;
}

KernelNeed need_of(const Json& item, const std::string& where) {
  const std::string* const repo = item.is_object() ? text_in(item, "repo-id") : nullptr;
  if (repo == nullptr) refuse(where, "an element of its kernel-depends has no repo-id");
  if (const std::string* const revision = text_in(item, "revision")) return {*repo, *revision};
  const auto version = item.find("version");
  if (version == item.end() || !version->is_number_unsigned())
    refuse(where, "an element of its kernel-depends has neither version nor revision", *repo);
  return {*repo, "v" + std::to_string(version->get<std::uint64_t>())};
}

}  // namespace

KernelMetadata read_kernel_metadata(const std::filesystem::path& file, const std::string& where) {
  Json json;
  try {
    json = parse_strict_json(bundle::read_text(file, kMostBytes), {.integers_only = false});
  } catch (const StrictJsonError& error) {
    refuse(where, error.what(), error.got());
  }
  if (!json.is_object()) refuse(where, "it is not an object");
  KernelMetadata metadata;
  if (const std::string* const loader = text_in(json, "kernels-minver")) metadata.loader = *loader;
  for (const Json& package : list_in(json, "python-depends", where)) {
    if (!package.is_string()) refuse(where, "its python-depends is not a list of names");
    metadata.packages.push_back(bundle::normalized_project_name(package.get<std::string>()));
  }
  for (const Json& item : list_in(json, "kernel-depends", where)) metadata.kernels.push_back(need_of(item, where));
  return metadata;
}

}  // namespace sealift::packager
