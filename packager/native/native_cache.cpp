// SPDX-License-Identifier: Apache-2.0
// One file each: a line with the SHA-256 of the rest, and JSON; see native_cache.hpp. What is not confirmed has another
// name, and the stamp of what was read in a line before.
#include "packager/native/native_cache.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdio>

#include "bundle/core/json.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Json;
using bundle::JsonObject;

namespace {

constexpr std::string_view kFormat = "4";  // changes whenever something else is read or compared of a file
constexpr std::uint64_t kMaxCached = std::uint64_t{256} << 20;
constexpr std::size_t kMany = 1'000'000;

std::vector<std::string> texts(const Json& array) {
  std::vector<std::string> out;
  for (const Json& text : array) out.push_back(text.get<std::string>());
  return out;
}

constexpr std::size_t kHash = 16;  // hexadecimal digits of a symbol's

std::string joined(const std::vector<std::uint64_t>& hashes) {
  std::string text;
  char digits[kHash + 1];
  for (const std::uint64_t hash : hashes) {
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    text.append(digits, kHash);
  }
  return text;
}

std::vector<std::uint64_t> hashes_of(const std::string& text) {
  std::vector<std::uint64_t> hashes(text.size() / kHash);
  for (std::size_t i = 0; i < hashes.size(); ++i)
    std::from_chars(text.data() + i * kHash, text.data() + (i + 1) * kHash, hashes[i], 16);
  return hashes;
}

Json to_json(const NativeFile& file) {
  Json wanted = Json::object();
  for (const auto& [library, versions] : file.elf.wanted_versions) wanted[library] = versions;
  Json gpu = Json::object();
  for (const auto& [images, times] : file.gpu.binaries) gpu[bundle::text_of(images)] = times;
  return {{"path", file.path},
          {"sha256", file.sha256.hex()},
          {"fault", file.fault},
          {"names", file.names},
          {"arch", file.elf.arch},
          {"type", file.elf.type},
          {"dynamic", file.elf.dynamic},
          {"interpreter", file.elf.interpreter},
          {"soname", file.elf.soname},
          {"needed", file.elf.needed},
          {"rpath", file.elf.rpath},
          {"runpath", file.elf.runpath},
          {"wanted", std::move(wanted)},
          {"offered", file.elf.offered_versions},
          {"executable_stack", file.elf.executable_stack},
          {"text_relocations", file.elf.text_relocations},
          {"cpu", file.elf.cpu_floor},
          {"kernel", file.elf.kernel_floor},
          {"defined", joined(file.symbols.defined)},
          {"undefined", file.symbols.undefined},
          {"gpu", std::move(gpu)},
          {"gpu_fault", file.gpu_fault}};
}

// The digest in front of it was checked, so to_json wrote this.
NativeFile from_json(const Json& json, const std::string& owner) {
  JsonObject object(json, owner);
  NativeFile file{.path = object.string("path"), .owner = owner, .from_wheel = owner.ends_with(".whl")};
  file.sha256 = object.digest("sha256");
  file.fault = object.string("fault");
  file.names = texts(object.array("names", kMany));
  file.elf.arch = object.string("arch");
  file.elf.type = static_cast<std::uint16_t>(object.integer("type", 0xffff));
  file.elf.dynamic = object.boolean("dynamic");
  file.elf.interpreter = object.string("interpreter");
  file.elf.soname = object.string("soname");
  file.elf.needed = texts(object.array("needed", kMany));
  file.elf.rpath = object.string("rpath");
  file.elf.runpath = object.string("runpath");
  for (const auto& [library, versions] : object.at("wanted").items())
    for (const std::string& version : texts(versions)) file.elf.wanted_versions[library].insert(version);
  for (const std::string& version : texts(object.array("offered", kMany))) file.elf.offered_versions.insert(version);
  file.elf.executable_stack = object.boolean("executable_stack");
  file.elf.text_relocations = object.boolean("text_relocations");
  file.elf.cpu_floor = object.string("cpu");
  file.elf.kernel_floor = object.string("kernel");
  file.symbols.defined = hashes_of(object.string("defined", kMaxCached));
  file.symbols.undefined = texts(object.array("undefined", kMany));
  for (const auto& [images, times] : object.at("gpu").items())
    file.gpu.binaries[bundle::parse_gpu_images(images).value()] = times.get<std::size_t>();
  file.gpu_fault = object.string("gpu_fault");
  object.done();
  return file;
}

// Nothing if `text` is not whole.
std::optional<std::vector<NativeFile>> files_of(const std::string& text, const std::string& owner,
                                                const fs::path& where) {
  const std::size_t line = text.find('\n');
  if (line == text.npos) return std::nullopt;
  const std::string_view body = std::string_view(text).substr(line + 1);
  if (text.substr(0, line) != bundle::sha256(bundle::as_bytes(body)).hex()) return std::nullopt;
  std::vector<NativeFile> files;
  for (const Json& json : bundle::parse_json(body, where.string(), 10 * kMany)) files.push_back(from_json(json, owner));
  return files;
}

// Changes with every write to the file, and where another takes its place; empty where nobody can tell.
std::string stamp_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return "";
  return fmt::format("{}-{}-{}-{}.{:09}-{}.{:09}", status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

}  // namespace

NativeCache::NativeCache(const Cache& cache, std::string python)
    : cache_(cache), folder_(cache.root() / "native"), python_(std::move(python)) {}

fs::path NativeCache::path(const bundle::Digest& sha256) const {
  return folder_ / (sha256.hex() + "-python" + python_ + "." + std::string(kFormat));
}

fs::path NativeCache::unconfirmed_path(const bundle::Digest& sha256) const {
  return path(sha256).concat(".unconfirmed");
}

NativeCache::Reading NativeCache::begin(const bundle::Digest& sha256) const {
  return {.sha256 = sha256, .stamp = stamp_of(cache_.path(sha256))};
}

void NativeCache::end(const Reading& reading, const std::vector<NativeFile>& files) const {
  if (reading.stamp.empty() || stamp_of(cache_.path(reading.sha256)) != reading.stamp) return;
  Json json = Json::array();
  for (const NativeFile& file : files) json.push_back(to_json(file));
  const std::string body = bundle::write_json(json);
  cache_.note(unconfirmed_path(reading.sha256),
              reading.stamp + "\n" + bundle::sha256(bundle::as_bytes(body)).hex() + "\n" + body);
}

std::optional<std::string> NativeCache::unconfirmed(const bundle::Digest& sha256) const {
  std::optional<std::string> text = cache_.read_note(unconfirmed_path(sha256), kMaxCached);
  const std::string stamp = stamp_of(cache_.path(sha256));
  if (!text || stamp.empty() || !text->starts_with(stamp + "\n")) return std::nullopt;
  text->erase(0, stamp.size() + 1);
  return text;
}

void NativeCache::confirm(const bundle::Digest& sha256) const {
  if (const std::optional<std::string> text = unconfirmed(sha256)) cache_.note(path(sha256), *text);
  std::error_code ignored;
  fs::remove(unconfirmed_path(sha256), ignored);
}

std::optional<std::vector<NativeFile>> NativeCache::read(const bundle::Digest& sha256, const std::string& owner) const {
  const std::optional<std::string> note = cache_.read_note(path(sha256), kMaxCached);
  if (note)
    if (auto files = files_of(*note, owner, path(sha256))) return files;
  if (const std::optional<std::string> text = unconfirmed(sha256))
    return files_of(*text, owner, unconfirmed_path(sha256));
  return std::nullopt;
}

}  // namespace sealift::packager
