// SPDX-License-Identifier: Apache-2.0
// verify: reads every byte of a bundle, or of one of its volumes. All failures go to stderr, and the first one's code
// is the exit code.
#include <fcntl.h>

#include <memory>

#include "installer/prefix/prefix.hpp"
#include "installer/print/verification_report.hpp"
#include "installer/print/volume_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace {

struct VerifyOptions {
  BundleOptions bundle;
  std::filesystem::path prefix;  // whose trust is read; empty: none
  std::filesystem::path volume;  // only this file; empty: the whole bundle
  bool deep = false;             // also what the chunks do not say
  bool json = false;
};

// Prints a report whose failures go to stderr, and returns the exit code.
template <class Report>
int show(const Report& report, const std::vector<bundle::Error>& failures, bool json) {
  bundle::print_warnings(report.warnings);
  if (failures.empty() || json) bundle::print(json, json_of(report), text_of(report));
  for (const bundle::Error& failure : failures) bundle::print_error(failure);
  return failures.empty() ? 0 : failures.front().exit_code();
}

// After the list of failures, since it may be long.
void print_verdict(const bundle::Damage& damage) {
  bundle::print_warnings(
      {damage.verdict() + (damage.mendable() ? "; `sealift-install mend BUNDLE --into FOLDER` does it"
                                             : "; copy bad files again from their source")});
}

bundle::Trust trust_of(const VerifyOptions& options) {
  const std::filesystem::path folder = options.prefix.empty() ? "" : Prefix(options.prefix).trust();
  return {.state = bundle::trust_for_run(folder, fingerprint_of(options.bundle.fingerprint)),
          .allow_downgrade = options.bundle.allow_downgrade,
          .sandboxed_builds_only = options.bundle.sandboxed_builds_only};
}

void refuse_senseless(const VerifyOptions& options) {
  if (options.volume.empty() && options.bundle.bundle.empty())
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "nothing is named that could be verified", .expected = "BUNDLE, or --volume FILE"});
  if (!options.volume.empty() && (options.deep || !options.bundle.volumes.empty()))
    throw bundle::Error(bundle::ErrorCode::Usage,
                        {.what = "--volume checks one volume alone, and --deep and --volumes are for whole bundles",
                         .next = "leave them out, or --volume"});
}

// Seal and chunk list lie beside the volume, unless BUNDLE names their folder.
int run_on_volume(const VerifyOptions& options) {
  const std::filesystem::path beside = options.volume.has_parent_path() ? options.volume.parent_path() : ".";
  bundle::Progress progress;
  const VolumeCheck check =
      check_volume(bundle::open(options.bundle.bundle.empty() ? beside : options.bundle.bundle), options.volume,
                   trust_of(options), bundle::system_time(), options.bundle.threads, progress);
  return show(check, check.failures(), options.json);
}

int run(const VerifyOptions& options) {
  refuse_senseless(options);
  if (!options.volume.empty()) return run_on_volume(options);
  bundle::Progress progress;
  const bundle::Trust trust = trust_of(options);
  bundle::OpenBundle opened = bundle::open(options.bundle.bundle);
  opened.more_folders = options.bundle.volumes;
  const Verification result =
      verify_every_byte(opened, trust, bundle::system_time(), options.bundle.threads, progress, options.deep);
  const int code = show(result, result.failures, options.json);
  if (result.damage && !result.damage->bad_volumes.empty()) print_verdict(*result.damage);
  return code;
}

}  // namespace

void add_verify(bundle::Program& program) {
  const bundle::Verb verb = program.verb("verify", "read every byte of a bundle and say whether it is whole");
  const auto options = std::make_shared<VerifyOptions>();
  verb.json(options->json);
  add_bundle_options(verb, options->bundle, false);
  add_prefix(verb, options->prefix, false);
  verb.option("--volume", options->volume,
              "only this volume or recovery file; seal and chunk list lie beside it or in BUNDLE, the other volumes "
              "need not be there");
  verb.flag("--deep", options->deep,
            "also compare each entry with the SHA-256 under which it was published, and each file with its list");
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
