// SPDX-License-Identifier: Apache-2.0
// index.json, filtered by tag, then by platform; see oci_folder.hpp. What else is wrong with it read_image_layout says.
#include "packager/images/oci_folder.hpp"

#include <set>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;
using bundle::Json;

namespace {

constexpr std::string_view kOciFolder = "oci:", kTagOfEntry = "org.opencontainers.image.ref.name";
constexpr std::uint64_t kMaxOciIndex = std::uint64_t{4} << 20;

std::string text_at(const Json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(std::string(key)) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json member_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : Json();
}

std::string tag_of(const Json& entry) {
  return text_at(member_of(entry, "annotations"), kTagOfEntry);
}

// "linux/amd64"; empty where the index does not say.
std::string platform_of(const Json& entry) {
  const Json platform = member_of(entry, "platform");
  const std::string os = text_at(platform, "os");
  return os.empty() ? "" : os + "/" + text_at(platform, "architecture");
}

std::string listed(const std::vector<Json>& entries, const fs::path& folder) {
  std::set<std::string> lines;
  for (const Json& entry : entries) {
    const std::string tag = tag_of(entry), platform = platform_of(entry);
    lines.insert((tag.empty() ? "no tag" : "oci:" + folder.string() + ":" + tag) +
                 (platform.empty() ? "" : " (" + platform + ")"));
  }
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : ", ") + bundle::SafePath::printable(line);
  return all.substr(0, 2000);
}

std::vector<Json> images_in(const fs::path& folder, const std::string& source) {
  try {
    const Json index = parse_strict_json(bundle::read_text(folder / "index.json", kMaxOciIndex),
                                         {.max_depth = 32, .max_values = 200'000, .integers_only = false});
    const Json manifests = member_of(index, "manifests");
    return manifests.is_array() ? manifests.get<std::vector<Json>>() : std::vector<Json>{};
  } catch (const StrictJsonError& error) {
    throw Error(ErrorCode::Format, {.what = "the index of an OCI folder cannot be read",
                                    .where = source,
                                    .got = error.what(),
                                    .next = "copy the image again: skopeo copy docker://… oci:FOLDER:TAG"});
  }
}

// The same blobs, and an index with this entry alone.
std::string view_of(const Json& entry, const fs::path& folder, const fs::path& scratch) {
  const fs::path view = scratch / "one";
  fs::create_directories(view);
  fs::create_directory_symlink(fs::canonical(folder / "blobs"), view / "blobs");
  bundle::write_text(view / "oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
  Json index = Json::object();
  index["schemaVersion"] = 2;
  index["manifests"] = Json::array();
  index["manifests"].push_back(entry);
  bundle::write_text(view / "index.json", index.dump());
  return std::string(kOciFolder) + view.string();
}

}  // namespace

std::string one_image_of(const std::string& source, const ImagePlatform& platform, const fs::path& scratch) {
  if (!source.starts_with(kOciFolder)) return source;
  const std::string rest = source.substr(kOciFolder.size()), wanted = "linux/" + platform.architecture;
  const std::size_t colon = rest.find(':');
  const fs::path folder = rest.substr(0, colon);
  const std::string tag = colon == rest.npos ? "" : rest.substr(colon + 1);
  const std::vector<Json> all = images_in(folder, source);
  if (all.size() == 1 && (tag.empty() || tag_of(all[0]) == tag)) return source;
  std::vector<Json> of_tag, fitting;
  for (const Json& entry : all)
    if (tag.empty() || tag_of(entry) == tag) of_tag.push_back(entry);
  if (of_tag.empty())
    throw Error(ErrorCode::Missing, {.what = "an OCI folder has no image of that tag",
                                     .where = source,
                                     .expected = all.empty() ? "an image" : "one of " + listed(all, folder),
                                     .got = tag,
                                     .next = "name a tag that it has, or copy the image there"});
  for (const Json& entry : of_tag)
    if (platform_of(entry).empty() || platform_of(entry) == wanted) fitting.push_back(entry);
  if (fitting.empty())
    throw Error(ErrorCode::Platform, {.what = "an image is not there for the job's target",
                                      .where = source,
                                      .expected = wanted,
                                      .got = listed(of_tag, folder),
                                      .next = "copy it there for this platform, too: skopeo copy --all docker://… " +
                                              std::string(kOciFolder) + folder.string()});
  if (fitting.size() > 1)
    throw Error(ErrorCode::Usage, {.what = "an OCI folder has several images, and the source does not say which",
                                   .where = source,
                                   .expected = "one of " + listed(fitting, folder),
                                   .got = std::to_string(fitting.size()) + " images",
                                   .next = "write the tag behind the folder: source = \"" + std::string(kOciFolder) +
                                           folder.string() + ":TAG\""});
  return view_of(fitting.front(), folder, scratch);
}

}  // namespace sealift::packager
