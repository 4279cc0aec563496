// SPDX-License-Identifier: Apache-2.0
// `sealift-pack create`: writes a signed bundle and rehearses it; see create.hpp and pack/rehearse.hpp.
#include "packager/create.hpp"

#include <fmt/format.h>

#include "bundle/host/waiver.hpp"
#include "packager/keys/key_file.hpp"
#include "packager/pack/rehearse.hpp"
#include "packager/pack/volume_size.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"

namespace sealift::packager {

namespace {

struct CreateArguments : CreateOptions {
  std::filesystem::path system;
  std::vector<std::filesystem::path> onto;
  std::vector<std::string> waivers;
  bool no_rehearsal = false;
  std::string volume = "0";
  std::string recovery;
  std::filesystem::path passphrase_file;
  bool unsigned_bundle = false;
  bool unsandboxed = false;
  bool json = false;
};

// A bundle without a signature is asked for, and never the result of a forgotten option.
void check_signing(const CreateArguments& options) {
  if (options.keys.empty() == options.unsigned_bundle) return;
  throw bundle::Error(
      bundle::ErrorCode::Usage,
      {.what = options.keys.empty() ? "nobody is to sign this bundle" : "a key is named, and --unsigned",
       .expected = "--unsigned, and later `sealift-pack sign` where the key is; or --key KEY",
       .next = "keep keys on an account that builds nothing: --unsigned"});
}

bundle::Json rehearsal_json(const NewRehearsal& rehearsal) {
  if (rehearsal.done) return {{"done", true}, {"system", rehearsal.done->system}};
  return {{"done", false}, {"why", rehearsal.why_not}};
}

std::uint64_t recovery_bytes(const bundle::Payload& payload) {
  std::uint64_t bytes = 0;
  for (const bundle::Volume& file : payload.recovery->files) bytes += file.size;
  return bytes;
}

bundle::Json recovery_json(const bundle::Payload& payload) {
  if (!payload.recovery) return {};
  return {{"size", recovery_bytes(payload)},
          {"files", payload.recovery->files.size()},
          {"groups", payload.recovery->groups},
          {"parity", payload.recovery->parity},
          {"mends_any_volume", bundle::mends_any_volume(payload)}};
}

std::string recovery_text(const bundle::Payload& payload) {
  return fmt::format("recovery data: {} in {} file(s), which mend up to {} pieces in each of {} group(s){}",
                     bundle::human_size(recovery_bytes(payload)), payload.recovery->files.size(),
                     payload.recovery->parity, payload.recovery->groups,
                     bundle::mends_any_volume(payload) ? ", so any one lost volume" : "; no whole lost volume");
}

bundle::Json image_json(const bundle::Manifest& manifest) {
  const bundle::Entry* const image = manifest.image();
  if (image == nullptr) return {};
  return {{"size", image->size}, {"beside", manifest.payload.size - image->size}, {"root", image->verity->hex()}};
}

bundle::Json json_of(const CreateResult& result, const NewRehearsal& rehearsal) {
  const std::optional<bundle::Digest>& base = result.manifest.base;
  return {{"bundle", result.folder.string()},
          {"size", result.manifest.payload.size},
          {"volumes", result.manifest.payload.volumes.size()},
          {"recovery", recovery_json(result.manifest.payload)},
          {"image", image_json(result.manifest)},
          {"base", base ? bundle::Json(bundle::fingerprint_text(*base)) : bundle::Json()},
          {"offline", findings_json(result.findings)},
          {"signers", signers_json(result.signers)},
          {"native", native_json(result.native)},
          {"rehearsal", rehearsal_json(rehearsal)}};
}

}  // namespace

void add_create(bundle::Program& program) {
  const auto options = std::make_shared<CreateArguments>();
  const bundle::Verb verb = program.verb("create", "fetch what a lock pins, check it, and write a signed bundle");
  verb.option("LOCK", options->lock, "the lock file").required();
  verb.option("--root", options->roots, "the roots that travel along, oldest first; may be repeated")
      .required()
      .repeated();
  verb.flag("--unsigned", options->unsigned_bundle, "sign later, with `sealift-pack sign`, where the key is");
  verb.option("--key", options->keys, "a private key that signs (release.key); may be repeated").repeated();
  verb.option("--passphrase-file", options->passphrase_file, kPassphraseFile);
  verb.option("--apt-key", options->apt_key,
              "fingerprint of the gpg key that signs the index of the job's Debian packages, for apt");
  verb.option("--rpm-key", options->rpm_key,
              "fingerprint of the gpg key that signs the index of the job's rpm packages, for dnf");
  verb.option("-o,--output", options->out, "the folder that gets NAME-VERSION/").required();
  verb.option("--cache", options->cache, "folder for downloads (default: $SEALIFT_CACHE, ~/.cache/sealift)");
  verb.option("--volume-size", options->volume,
              "cut the payload to fit discs: 1G, 4700M, dvd, dvd-dl, bd, cd, fat32 (default: one)");
  verb.option("--recovery", options->recovery,
              "also write recovery data that mends damaged discs, as a share of the payload: 5%");
  verb.option("--installer", options->installer, "the static sealift-install (default: beside this program)");
  verb.option(
      "--base", options->base,
      "leave out what a target has (a delta): its `sealift-install inventory`, or the bundle that was sent last");
  verb.flag("--patches", options->patches,
            "with a bundle as --base: carry only the changed parts of a wheel (it can be installed, not served)");
  verb.option("--onto", options->onto, "a bundle to rehearse a delta on; may be repeated, oldest first").repeated();
  verb.option("--jobs", options->fetch.jobs, "downloads at a time").between(1, 64);
  verb.flag("--unsandboxed-builds", options->unsandboxed, kUnsandboxedBuilds);
  verb.flag("--no-rehearsal", options->no_rehearsal, "do not install the bundle without a network at the end");
  verb.option("--waive", options->waivers, "PATH=REASON, for the rehearsal: a native file that may fail to load")
      .repeated();
  verb.option("--system", options->system, "the root folder of a system of the target's kind, to rehearse in");
  verb.json(options->json);
  verb.action([options] {
    bundle::Progress progress;
    options->volume_size = parse_volume_size(options->volume);
    if (!options->recovery.empty()) options->recovery_percent = parse_percent(options->recovery);
    check_signing(*options);
    bundle::parse_waivers(options->waivers);
    if (options->unsandboxed) options->isolation = Isolation::None;
    if (!options->keys.empty()) options->passphrase = read_passphrase(options->passphrase_file);
    NewRehearsal draft;
    if (!options->no_rehearsal)
      options->on_draft = [&](const std::filesystem::path& folder, const bundle::Digest& fingerprint) {
        draft = rehearse_draft(folder, fingerprint, options->system, options->waivers, progress);
      };
    const CreateResult result = create(*options, progress);
    const bundle::Payload& payload = result.manifest.payload;
    progress.note(fmt::format("{} entries, {} in {} volume(s); signatures: {}", result.manifest.entries.size(),
                              bundle::human_size(payload.size), payload.volumes.size(), text_of(result.roles)));
    if (payload.recovery) progress.note(recovery_text(payload));
    if (!result.findings.empty())  // each has its remedy, which `lock` has said
      progress.note(
          fmt::format("offline: {} finding(s), as lock explained them (--json lists them)", result.findings.size()));
    const NewRehearsal rehearsal =
        options->no_rehearsal ? NewRehearsal{.why_not = "--no-rehearsal"}
        : carries_image_alone(result.manifest)
            ? draft
            : rehearse_new(result.folder, result.roles, options->system, options->onto, options->waivers, progress);
    bundle::print(options->json, json_of(result, rehearsal), result.folder.string() + "\n");
    return 0;
  });
}

}  // namespace sealift::packager
