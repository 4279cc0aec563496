// SPDX-License-Identifier: Apache-2.0
// Reads and writes [[image]]; see image_toml.hpp. A source becomes an argument of skopeo, so few characters are allowed
// in it, and it always begins with its transport.
#include "packager/tables/image_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kRegistry = "docker://", kDigestMark = "@sha256:";
constexpr std::string_view kFileTransports[] = {"oci-archive:", "oci:", "docker-archive:"};
constexpr char kSourceForm[] =
    "docker://HOST/NAME:TAG or @sha256:…, oci:DIR:REF, oci-archive:FILE or docker-archive:FILE";

bool is_address(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-:[]").find(c) != std::string_view::npos;
  });
}

// HOST/NAME[:TAG][@sha256:HEX]. No host is built in, so one must be there.
void read_registry_source(TomlTable& table, std::string text, JobImage& image) {
  if (const std::size_t at = text.find(kDigestMark); at != text.npos) {
    image.digest = bundle::Digest::from_hex(text.substr(at + kDigestMark.size()));
    if (!image.digest) table.refuse("source", "this digest is not a SHA-256", "64 lower-case hexadecimal digits", text);
    text.resize(at);
  }
  const std::size_t slash = text.find('/');
  const std::string host = slash == text.npos ? "" : text.substr(0, slash);
  std::string name = slash == text.npos ? "" : text.substr(slash + 1), tag;
  if (const std::size_t colon = name.find(':'); colon != name.npos) {
    tag = name.substr(colon + 1);
    name.resize(colon);
    if (!bundle::is_image_tag(tag)) table.refuse("source", "this is not the tag of an image", kSourceForm, tag);
  }
  if (!is_address(host) || (host.find_first_of(".:") == host.npos && host != "localhost"))
    table.refuse("source", "nothing says which registry this image comes from", kSourceForm, host,
                 "name the host, even of the registry that docker takes by default; none is built in");
  if (!bundle::is_repository_name(name))
    table.refuse("source", "this is not the name of an image", kSourceForm, bundle::SafePath::printable(name));
  if (image.spec.name.empty()) image.spec.name = name;
  if (image.spec.tag.empty()) image.spec.tag = tag;
  // skopeo takes a tag or a digest, and the digest says more.
  const std::string place = std::string(kRegistry) + host + "/" + name;
  image.spec.source =
      image.digest ? place + std::string(kDigestMark) + image.digest->hex() : place + (tag.empty() ? "" : ":" + tag);
}

// TRANSPORT:PATH[:REF], the path relative to the job file.
void read_file_source(TomlTable& table, std::string_view transport, const std::string& rest, const fs::path& folder,
                      ImageSpec& spec) {
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const fs::path path = fs::absolute(folder / rest.substr(0, colon)).lexically_normal();
  std::error_code ignored;
  if (rest.empty() || (transport == "oci:" ? !fs::is_directory(path, ignored) : !fs::is_regular_file(path, ignored)))
    table.refuse("source", "the image is not there", transport == "oci:" ? "a folder with index.json" : "a file",
                 path.string(), "correct the path; it is relative to the job file");
  if (path.string().find(':') != std::string::npos)
    table.refuse("source", "the path of an image holds a colon, which skopeo takes for the end of it", {},
                 path.string(), "move it to another folder");
  spec.source = std::string(transport) + path.string() + rest.substr(colon);
}

void read_image_source(TomlTable& table, const fs::path& folder, JobImage& image) {
  const std::string source = table.string("source");
  const auto printable = [](unsigned char c) { return c > 0x20 && c != 0x7f; };
  if (!std::all_of(source.begin(), source.end(), printable))
    table.refuse("source", "the source of an image holds a space or a control character", kSourceForm,
                 bundle::SafePath::printable(source));
  if (source.starts_with(kRegistry)) return read_registry_source(table, source.substr(kRegistry.size()), image);
  for (const std::string_view transport : kFileTransports)
    if (source.starts_with(transport))
      return read_file_source(table, transport, source.substr(transport.size()), folder, image.spec);
  table.refuse("source", "this is not where an image comes from", kSourceForm, source);
}

JobImage read_job_image(TomlTable& table, const fs::path& folder) {
  JobImage image;
  table.attempt([&] { image.spec.name = table.string_or("name", ""); });
  table.attempt([&] { image.spec.tag = table.string_or("tag", ""); });
  table.attempt([&] { read_image_source(table, folder, image); });
  table.done();  // since the source may have given both
  table.attempt([&] {
    if (!bundle::is_image_name(image.spec.name))
      table.refuse("name", "an image has no name that registries take",
                   "like \"org/app\"; not \"b\", \"c\" or \"bundles\" first", image.spec.name);
  });
  table.attempt([&] {
    if (!bundle::is_image_tag(image.spec.tag))
      table.refuse("tag", "an image has no tag", "like \"1.0\", here or in the source", image.spec.tag);
  });
  table.done();
  return image;
}

bundle::Digest locked_digest(TomlTable& table) {
  const std::string text = table.string("sha256");
  const std::optional<bundle::Digest> digest = bundle::Digest::from_hex(text);
  if (!digest) table.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  return *digest;
}

LockedBlob read_blob(TomlTable table) {
  LockedBlob blob{
      .sha256 = locked_digest(table), .size = table.integer("size"), .media_type = table.string("media_type")};
  table.done();
  return blob;
}

std::string write_blob(const LockedBlob& blob) {
  return fmt::format("{{ sha256 = {}, size = {}, media_type = {} }}", toml_quoted(blob.sha256.hex()), blob.size,
                     toml_quoted(blob.media_type));
}

LockedImage read_locked_image(TomlTable& table) {
  LockedImage image{.name = table.string("name"),
                    .tag = table.string("tag"),
                    .reference = table.string_or("reference", ""),
                    .manifest = read_blob(table.table("manifest")),
                    .blobs = {}};
  if (!bundle::is_image_name(image.name)) table.refuse("name", "this is not the name of an image", {}, image.name);
  if (!bundle::is_image_tag(image.tag)) table.refuse("tag", "this is not the tag of an image", {}, image.tag);
  for (TomlTable& blob : table.tables("blobs")) image.blobs.push_back(read_blob(blob));
  table.done();
  return image;
}

}  // namespace

std::vector<JobImage> read_job_images(TomlTable& job, const fs::path& folder) {
  std::vector<JobImage> images;
  std::set<std::string> titles;
  job.each("image", [&](TomlTable& table) {
    images.push_back(read_job_image(table, folder));
    if (const std::string title = images.back().spec.title(); !titles.insert(title).second)
      table.refuse("name", "two images have one name and tag", "a name or tag of its own", title);
  });
  return images;
}

std::vector<LockedImage> read_locked_images(TomlTable& lock) {
  std::vector<LockedImage> images;
  for (TomlTable& table : lock.tables("image")) images.push_back(read_locked_image(table));
  return images;
}

std::string write_locked_images(const std::vector<LockedImage>& images) {
  std::string out;
  for (const LockedImage& image : images) {
    out += fmt::format("\n[[image]]\nname = {}\ntag = {}\n", toml_quoted(image.name), toml_quoted(image.tag));
    if (!image.reference.empty()) out += fmt::format("reference = {}\n", toml_quoted(image.reference));
    out += fmt::format("manifest = {}\nblobs = [\n", write_blob(image.manifest));
    for (const LockedBlob& blob : image.blobs) out += "  " + write_blob(blob) + ",\n";
    out += "]\n";
  }
  return out;
}

}  // namespace sealift::packager
