// SPDX-License-Identifier: Apache-2.0
// Bundle and lock become the same small value first, so either can be compared with either.
#include "packager/compare/diff.hpp"

#include <fmt/format.h>

#include <utility>

#include "bundle/core/json.hpp"
#include "packager/compare/inspect.hpp"
#include "packager/lock/lock.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kInterpreterPath = "python/cpython-";

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

void add_common_facts(DiffSide& side, std::uint64_t version, const std::string& channel, std::uint64_t rollback_floor,
                      const bundle::Target& target, const std::optional<bundle::CarriedRuntime>& runtime,
                      bundle::GlibcVersion floor, const std::vector<std::string>& imports) {
  side.facts["version"] = std::to_string(version);
  side.facts["channel"] = channel;
  side.facts["rollback_floor"] = std::to_string(rollback_floor);
  side.facts["target.arch"] = target.arch;
  side.facts["target.glibc"] = target.glibc.text();
  side.facts["target.glibc_floor"] = floor.text();
  side.facts["runtime"] = runtime ? "carried glibc " + runtime->glibc.text() : "the target's";
  side.facts["imports"] = joined(imports);
}

// Two wheels of one project, which no packer of ours makes, are told apart by their paths.
void add_item(DiffSide& side, const std::string& name, const std::string& path, DiffItem item) {
  if (!side.items.emplace(name, item).second) side.items.emplace(path, std::move(item));
}

DiffSide side_of(const bundle::Manifest& manifest) {
  DiffSide side{.name = manifest.stem()};
  add_common_facts(side, manifest.version, manifest.channel, manifest.rollback_floor, manifest.target,
                   manifest.environment.runtime, manifest.glibc_floor, manifest.environment.imports);
  side.facts["interpreter"] = manifest.environment.interpreter.text();
  side.facts["volumes"] = std::to_string(manifest.payload.volumes.size());
  side.facts["payload_digest"] = bundle::name_of(manifest.payload.digest);
  side.facts["base"] = manifest.base ? bundle::fingerprint_text(*manifest.base) : "";
  for (const bundle::Entry& entry : manifest.entries) {
    const std::string path = entry.path.text();
    DiffItem item{.size = entry.size, .sha256 = entry.sha256};
    const std::string file = fs::path(path).filename().string();
    std::string name = path;
    if (const auto wheel = bundle::parse_wheel_name(file); wheel && entry.kind == bundle::EntryKind::Wheel) {
      name = "wheel " + bundle::normalized_project_name(wheel->name);
      item.version = wheel->version;
    } else if (path.starts_with(kInterpreterPath)) {
      name = "interpreter";
      item.version = fs::path(path.substr(kInterpreterPath.size())).stem().string();
    }
    add_item(side, name, path, std::move(item));
  }
  return side;
}

DiffSide side_of(const Lock& lock) {
  DiffSide side{.name = lock.stem()};
  add_common_facts(side, lock.version, lock.channel, lock.rollback_floor, lock.target, lock.runtime, lock.glibc_floor,
                   lock.imports);
  side.facts["interpreter"] =
      lock.python.empty() ? bundle::Environment().interpreter.text() : "bin/python" + lock.python;
  side.facts["payload_digest"] = bundle::name_of(lock.payload_digest);
  side.facts["target.glibcxx"] = lock.target.glibcxx;
  side.facts["target.cxxabi"] = lock.target.cxxabi;
  side.facts["target.distribution"] = lock.target.distribution;
  side.facts["target.kernel"] = lock.target.kernel;
  side.facts["target.cpu"] = lock.target.cpu;
  side.facts["target.flags"] = joined(lock.target.flags);
  side.facts["target.gpus"] = joined(lock.target.gpus);
  side.facts["target.driver"] = lock.target.driver;
  side.facts["target.python"] = joined(lock.target.python);
  side.facts["target.crypto"] = joined(lock.target.crypto);
  for (const LockedWheel& wheel : lock.wheels) {
    const auto name = bundle::parse_wheel_name(wheel.file_name);
    add_item(side, "wheel " + bundle::normalized_project_name(wheel.name), "wheels/" + wheel.file_name,
             {.version = name ? name->version : wheel.version, .size = wheel.size, .sha256 = wheel.sha256});
  }
  if (!lock.python.empty())
    side.items["interpreter"] = {
        .version = lock.interpreter.version, .size = lock.interpreter.size, .sha256 = lock.interpreter.sha256};
  for (const LockedProgram& program : lock.programs)
    side.items["programs/" + program.into] = {.size = program.size, .sha256 = program.sha256};
  for (const LockedImage& image : lock.images) {
    side.items[bundle::image_blob_entry(image.manifest.sha256)] = {.size = image.manifest.size,
                                                                   .sha256 = image.manifest.sha256};
    for (const LockedBlob& blob : image.blobs)
      side.items[bundle::image_blob_entry(blob.sha256)] = {.size = blob.size, .sha256 = blob.sha256};
  }
  if (!lock.apt.debs.empty())
    side.items["files/apt/Packages"] = {.size = lock.apt.index_size, .sha256 = lock.apt.index_sha256};
  for (const LockedDeb& deb : lock.apt.debs)
    side.items["files/apt/" + deb.file] = {.size = deb.size, .sha256 = deb.sha256};
  for (const LockedRpmIndex& index : lock.rpm.index)
    side.items["files/rpm/" + index.file] = {.size = index.size, .sha256 = index.sha256};
  for (const LockedRpmPackage& rpm : lock.rpm.rpms)
    side.items["files/rpm/" + rpm.file] = {.size = rpm.size, .sha256 = rpm.sha256};
  return side;
}

// "1.0, 17.1 MB"
std::string describe(const DiffItem& item) {
  std::string text = item.version;
  if (item.size != 0) text += (text.empty() ? "" : ", ") + bundle::human_size(item.size);
  return text;
}

std::string line_of(const Diff::Item& item) {
  if (!item.before) return fmt::format("  + {}  {}\n", item.name, describe(*item.after));
  if (!item.after) return fmt::format("  - {}  {}\n", item.name, describe(*item.before));
  const std::string before = describe(*item.before), after = describe(*item.after);
  return before == after ? fmt::format("  * {}  {}, other bytes\n", item.name, before)
                         : fmt::format("  * {}  {} -> {}\n", item.name, before, after);
}

bundle::Json json_of(const DiffItem& item) {
  return {{"version", item.version}, {"size", item.size}, {"sha256", item.sha256.hex()}};
}

}  // namespace

DiffSide read_diff_side(const fs::path& file) {
  if (fs::is_directory(file) || file.extension() == ".seal") return side_of(inspect(file, std::nullopt).manifest);
  return side_of(read_lock(file));
}

Diff diff(const DiffSide& before, const DiffSide& after) {
  Diff out{.before = before.name, .after = after.name};
  for (const auto& [name, value] : before.facts)
    if (const auto other = after.facts.find(name); other != after.facts.end() && other->second != value)
      out.facts.push_back({.name = name, .before = value, .after = other->second});
  std::map<std::string, Diff::Item> items;
  for (const auto& [name, item] : before.items) items[name] = {.name = name, .before = item, .after = {}};
  for (const auto& [name, item] : after.items) {
    items[name].name = name;
    items[name].after = item;
  }
  for (auto& [name, item] : items) {
    // The bytes decide: a lock need not know a size.
    if (item.before && item.after && item.before->sha256 == item.after->sha256)
      ++out.same;
    else
      out.items.push_back(std::move(item));
  }
  return out;
}

std::string diff_text(const Diff& diff) {
  std::string out = fmt::format("{} -> {}\n", diff.before, diff.after);
  for (const Diff::Fact& fact : diff.facts)
    out += fmt::format("  {}  {} -> {}\n", fact.name, fact.before.empty() ? "(none)" : fact.before,
                       fact.after.empty() ? "(none)" : fact.after);
  std::uint64_t added = 0, removed = 0, changed = 0, bytes_in = 0, bytes_out = 0;
  for (const Diff::Item& item : diff.items) {
    out += line_of(item);
    ++(!item.before ? added : !item.after ? removed : changed);
    bytes_in += item.after ? item.after->size : 0;
    bytes_out += item.before ? item.before->size : 0;
  }
  return out + fmt::format("{} added, {} removed, {} changed, {} the same; {} new, {} gone\n", added, removed, changed,
                           diff.same, bundle::human_size(bytes_in), bundle::human_size(bytes_out));
}

bundle::Json diff_json(const Diff& diff) {
  bundle::Json facts = bundle::Json::object(), added = bundle::Json::object(), removed = bundle::Json::object(),
               changed = bundle::Json::object();
  for (const Diff::Fact& fact : diff.facts) facts[fact.name] = {{"before", fact.before}, {"after", fact.after}};
  for (const Diff::Item& item : diff.items) {
    if (!item.before)
      added[item.name] = json_of(*item.after);
    else if (!item.after)
      removed[item.name] = json_of(*item.before);
    else
      changed[item.name] = {{"before", json_of(*item.before)}, {"after", json_of(*item.after)}};
  }
  return {{"before", diff.before},     {"after", diff.after},           {"facts", std::move(facts)},
          {"added", std::move(added)}, {"removed", std::move(removed)}, {"changed", std::move(changed)},
          {"same", diff.same}};
}

}  // namespace sealift::packager
