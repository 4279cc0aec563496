// SPDX-License-Identifier: Apache-2.0
// Reads a bundle's seal; see inspect.hpp.
#include "packager/compare/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "bundle/core/json.hpp"
#include "packager/native/driver_floor.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

InspectReport inspect(const std::filesystem::path& bundle, const std::optional<bundle::Digest>& fingerprint) {
  const bundle::OpenBundle opened = bundle::open(bundle);
  const std::string where = opened.seal_path.string();
  InspectReport report{.roots = bundle::read_root_chain(opened.seal.roots, where),
                       .roles = bundle_status(opened.seal),
                       .trusted = fingerprint.has_value()};
  if (fingerprint) {
    const bundle::VerifiedBundle verified =
        bundle::verify(opened, {.state = {.pinned = *fingerprint}}, bundle::system_time());
    report.manifest = verified.manifest();
    report.identity = verified.identity();
    report.signers = verified.signers();
    report.warnings = verified.warnings();
    return report;
  }
  require_payload_type(opened.seal.manifest, bundle::kBundlePayloadType, bundle::ErrorCode::CannotCheck,
                       "the seal is for something else", where);
  // Valid signatures prove that nothing was changed since, and nothing else: the keys are the seal's own.
  for (const auto& [id, verdict] : bundle::check_signatures(opened.seal.manifest, where)) report.signers.push_back(id);
  report.identity = opened.seal.manifest.digest();
  report.manifest = bundle::parse_manifest(opened.seal.manifest.payload, opened.seal_path.filename().string());
  return report;
}

namespace {

// "wheels     29, 2.7 GB", with the stored size where that is less; of a delta what it carries.
std::string sizes_by_kind(const bundle::Manifest& manifest) {
  struct Sum {
    std::uint64_t count = 0, size = 0, stored = 0;
  };
  std::map<bundle::EntryKind, Sum> sums;
  Sum absent;
  for (const bundle::Entry& entry : manifest.entries) {
    Sum& sum = entry.absent ? absent : sums[entry.kind];
    ++sum.count;
    sum.size += entry.size;
    sum.stored += entry.stored_size;
  }
  std::string out;
  for (const auto& [kind, sum] : sums)
    out += fmt::format("{:<10} {}, {}{}\n", name_of(kind) + (kind == bundle::EntryKind::Squashfs ? "" : "s"), sum.count,
                       bundle::human_size(sum.size),
                       sum.stored < sum.size ? ", stored as " + bundle::human_size(sum.stored) : "");
  if (carries_image_alone(manifest))
    out +=
        fmt::format("absent     {}, {}; the image was made of them\n", absent.count, bundle::human_size(absent.size));
  if (manifest.base)
    out += fmt::format("absent     {}, {}; the target has them by its inventory\n           sha256:{}\n", absent.count,
                       bundle::human_size(absent.size), manifest.base->hex());
  return out;
}

// The five entries that take most room on a disc.
std::string largest(const bundle::Manifest& manifest) {
  std::vector<const bundle::Entry*> entries;
  for (const bundle::Entry& entry : manifest.entries)
    if (!entry.absent) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const bundle::Entry* a, const bundle::Entry* b) { return a->stored_size > b->stored_size; });
  std::string out = "largest\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(entries.size(), 5); ++i)
    out += fmt::format("  {:>10}  {}\n", bundle::human_size(entries[i]->stored_size), entries[i]->path.text());
  return out;
}

}  // namespace

std::string inspect_text(const InspectReport& report) {
  const bundle::Manifest& manifest = report.manifest;
  std::uint64_t installed = 0, files = 0;
  for (const bundle::Entry& entry : manifest.entries) {
    installed += entry.installed_size;
    files += entry.installed_files;
  }
  std::string out = fmt::format("{}  (channel {}, version {}, created {})\nmanifest   sha256:{}\n", manifest.stem(),
                                manifest.channel, manifest.version, manifest.created, report.identity.hex());
  for (const bundle::Digest& signer : report.signers)
    out += fmt::format("signed by  {}\n", bundle::fingerprint_text(signer));
  out += fmt::format("signatures {}\n", text_of(report.roles));
  for (const bundle::SignedRoot& root : report.roots)
    out += fmt::format("root {:<5} sha256:{}  {}, until {}\n", root.root.version, root.fingerprint().hex(),
                       root.root.name, root.root.expires);
  out += report.trusted ? "trust      the roots begin at the root that you named, and its thresholds are met\n"
                        : "trust      UNVERIFIED: no fingerprint was given, so anyone may have signed this;\n"
                          "           compare the root with the one its owner told you, or use --fingerprint\n";
  for (const std::string& warning : report.warnings) out += fmt::format("warning    {}\n", warning);
  const auto& runtime = manifest.environment.runtime;
  out += fmt::format("target     {}, {} (carried files need {})\n", manifest.target.arch,
                     runtime
                         ? fmt::format("Linux {} or newer; glibc {} is carried", runtime->kernel, runtime->glibc.text())
                         : fmt::format("glibc {} or newer", manifest.target.glibc.text()),
                     manifest.glibc_floor.text());
  std::vector<std::string> wheels;
  for (const bundle::Entry& entry : manifest.entries)
    if (entry.kind == bundle::EntryKind::Wheel)
      wheels.push_back(entry.path.text().substr(entry.path.text().rfind('/') + 1));
  if (const std::string driver = driver_text(cuda_of_wheels(wheels)); !driver.empty())
    out += fmt::format("driver     {}\n", driver);
  for (const auto& [component, images] : manifest.gpu_code)
    out += fmt::format("GPU code   {}: {}\n", component, images);
  for (const std::string& check : manifest.overruled)
    out += fmt::format("overruled  {}: the target's profile may have less than the bundle needs\n", check);
  out += fmt::format("payload    {} in {} volume(s), {} chunks of {} bytes; not read by inspect\n",
                     bundle::human_size(manifest.payload.size), manifest.payload.volumes.size(),
                     manifest.payload.chunk_count(), manifest.payload.chunk_size);
  for (const bundle::Volume& volume : manifest.payload.volumes)
    out += fmt::format("  {:>10}  {}\n", bundle::human_size(volume.size), volume.name);
  if (const std::optional<bundle::Recovery>& recovery = manifest.payload.recovery) {
    out += fmt::format("recovery   {} of each {} group(s) of pieces mend as many lost ones\n", recovery->parity,
                       recovery->groups);
    for (const bundle::Volume& file : recovery->files)
      out += fmt::format("  {:>10}  {}\n", bundle::human_size(file.size), file.name);
  }
  out += sizes_by_kind(manifest) + largest(manifest);
  out += fmt::format("installed  about {} in {} files and folders\n", bundle::human_size(installed), files);
  out += "imports   ";
  for (const std::string& module : manifest.environment.imports) out += " " + module;
  for (const auto& [build, words] : {std::pair(bundle::WheelBuild::Sandboxed, "in a sandbox"),
                                     std::pair(bundle::WheelBuild::Unsandboxed, "outside of a sandbox")})
    for (const std::string& wheel : wheels_built(manifest, build))
      out += fmt::format("\nbuilt      {}, by its packer from source, {}", wheel, words);
  for (const bundle::Digest& file : manifest.environment.startup_files)
    out += fmt::format("\nstart-up   the .pth file with SHA-256 {} may run code whenever Python starts", file.hex());
  out += fmt::format("\nentries    {}\n", manifest.entries.size());
  for (const bundle::Entry& entry : manifest.entries)
    out += fmt::format("  {:>10}  {:5}  {}\n", entry.absent ? "absent" : bundle::human_size(entry.stored_size),
                       name_of(entry.kind), entry.path.text());
  for (const bundle::Environment::Placement& placement : manifest.environment.placements)
    for (const bundle::SafePath& path : placement.left_out)
      out += fmt::format("left out of {}\n              {}, which another package owns\n", placement.entry.text(),
                         path.text());
  for (const bundle::Environment::Placement& placement : manifest.environment.placements)
    for (const bundle::SafePath& folder : placement.shared)
      out += fmt::format("shared     {}\n              has files in {}, a package of another one\n",
                         placement.entry.text(), folder.text());
  for (const bundle::Companion& companion : manifest.companions)
    out += fmt::format("beside it\n  {:>10}  {}  sha256:{}\n", bundle::human_size(companion.size), companion.name,
                       companion.sha256.hex());
  return out;
}

bundle::Json inspect_json(const InspectReport& report) {
  bundle::Json roots = bundle::Json::array();
  for (const bundle::SignedRoot& root : report.roots)
    roots.push_back({{"version", root.root.version}, {"fingerprint", bundle::fingerprint_text(root.fingerprint())}});
  return {{"trusted", report.trusted},
          {"signers", signers_json(report.signers)},
          {"roots", std::move(roots)},
          {"roles", roles_json(report.roles)},
          {"warnings", report.warnings},
          {"manifest_sha256", report.identity.hex()},
          {"manifest", bundle::parse_json(bundle::write_manifest(report.manifest), "manifest")}};
}

}  // namespace sealift::packager
