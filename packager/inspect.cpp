// SPDX-License-Identifier: Apache-2.0
// Looks at a bundle's seal; see inspect.hpp.
#include "packager/inspect.hpp"

#include <fmt/format.h>

#include "packager/console.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::packager {

InspectReport inspect(const std::filesystem::path& bundle, const std::optional<bundle::Digest>& fingerprint) {
  const bundle::OpenBundle opened = bundle::open(bundle);
  if (fingerprint) {
    const bundle::VerifiedBundle verified = bundle::verify(opened, {.fingerprints = {*fingerprint}});
    return {.manifest = verified.manifest(),
            .identity = verified.identity(),
            .signers = {verified.signer()},
            .trusted = true};
  }
  const std::string where = opened.seal_path.string();
  const bundle::Seal seal = bundle::parse_seal(bundle::read_text(opened.seal_path, bundle::kMaxSealSize), where);
  // Trusting just the keys that the seal itself names proves that nothing was changed since, and nothing else.
  bundle::TrustedKeys named;
  for (const bundle::Seal::Signature& signature : seal.signatures)
    named.fingerprints.push_back(bundle::sha256(signature.spki));
  bundle::check_seal(seal, named, where);
  return {.manifest = bundle::parse_manifest(seal.payload, opened.seal_path.filename().string()),
          .identity = bundle::sha256(bundle::as_bytes(seal.payload)),
          .signers = named.fingerprints,
          .trusted = false};
}

std::string inspect_text(const InspectReport& report) {
  const bundle::Manifest& manifest = report.manifest;
  std::uint64_t installed = 0, files = 0;
  for (const bundle::Entry& entry : manifest.entries) {
    installed += entry.installed_size;
    files += entry.installed_files;
  }
  std::string out = fmt::format("{}  (channel {}, version {}, created {})\nmanifest   sha256:{}\n", manifest.stem(),
                                manifest.channel, manifest.version, manifest.created, report.identity.hex());
  for (const bundle::Digest& signer : report.signers) out += fmt::format("signed by  sha256:{}\n", signer.hex());
  out += report.trusted ? "trust      the key that you named signed this\n"
                        : "trust      UNVERIFIED: no fingerprint was given, so anyone may have signed this;\n"
                          "           compare the key with the one its sender told you, or use --fingerprint\n";
  out += fmt::format("target     {}, glibc {} or newer (carried files need {})\n", manifest.target.arch,
                     manifest.target.glibc.text(), manifest.glibc_floor.text());
  out += fmt::format("payload    {} in {} volume(s), {} chunks of {} bytes; not read by inspect\n",
                     human_size(manifest.payload.size), manifest.payload.volumes.size(), manifest.payload.chunk_count(),
                     manifest.payload.chunk_size);
  for (const bundle::Volume& volume : manifest.payload.volumes)
    out += fmt::format("  {:>10}  {}\n", human_size(volume.size), volume.name);
  out += fmt::format("installed  about {} in {} files and folders\n", human_size(installed), files);
  out += "imports   ";
  for (const std::string& module : manifest.environment.imports) out += " " + module;
  out += fmt::format("\nentries    {}\n", manifest.entries.size());
  for (const bundle::Entry& entry : manifest.entries)
    out += fmt::format("  {:>10}  {:5}  {}\n", human_size(entry.stored_size),
                       bundle::detail::enum_name(bundle::detail::kKindNames, entry.kind), entry.path.text());
  for (const bundle::Companion& companion : manifest.companions)
    out += fmt::format("beside it\n  {:>10}  {}\n", human_size(companion.size), companion.name);
  return out;
}

std::string inspect_json(const InspectReport& report) {
  bundle::Json signers = bundle::Json::array();
  for (const bundle::Digest& signer : report.signers) signers.push_back("sha256:" + signer.hex());
  return bundle::write_json({{"trusted", report.trusted},
                             {"signers", std::move(signers)},
                             {"manifest_sha256", report.identity.hex()},
                             {"manifest", bundle::parse_json(bundle::write_manifest(report.manifest), "manifest")}});
}

}  // namespace sealift::packager
