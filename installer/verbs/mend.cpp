// SPDX-License-Identifier: Apache-2.0
// mend: whole volumes again, from what a damaged medium still has and from recovery data.
#include <memory>

#include "installer/prefix/prefix.hpp"
#include "installer/print/mend_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace {

struct MendOptions {
  BundleOptions bundle;
  std::filesystem::path prefix;  // whose trust is read; empty: none
  std::filesystem::path into;
  bool json = false;
};

int run(const MendOptions& options) {
  bundle::Progress progress;
  const std::filesystem::path folder = options.prefix.empty() ? "" : Prefix(options.prefix).trust();
  const bundle::Trust trust{.state = bundle::trust_for_run(folder, fingerprint_of(options.bundle.fingerprint)),
                            .allow_downgrade = options.bundle.allow_downgrade,
                            .sandboxed_builds_only = options.bundle.sandboxed_builds_only};
  bundle::OpenBundle opened = bundle::open(options.bundle.bundle);
  opened.more_folders = options.bundle.volumes;
  Disk disk;
  const Mended mended = mend(std::move(opened), std::filesystem::absolute(options.into).lexically_normal(), trust,
                             bundle::system_time(), options.bundle.threads, disk, progress);
  bundle::print_warnings(mended.warnings);
  bundle::print(options.json, json_of(mended), text_of(mended));
  return 0;
}

}  // namespace

void add_mend(bundle::Program& program) {
  const bundle::Verb verb =
      program.verb("mend", "write whole volumes from a damaged medium and its recovery data, each byte verified");
  const auto options = std::make_shared<MendOptions>();
  verb.json(options->json);
  add_bundle_options(verb, options->bundle);
  add_prefix(verb, options->prefix, false);
  verb.option("--into", options->into, "the folder that gets NAME-VERSION/ with the mended volumes").required();
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
