// SPDX-License-Identifier: Apache-2.0
// export: entries as plain, verified files for servers that a site has already.
#include <memory>

#include "installer/host/mending.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/print/export_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace {

struct ExportOptions {
  BundleOptions bundle;
  std::vector<std::filesystem::path> bases;
  std::filesystem::path prefix;  // whose trust is read; empty: none
  ExportFolders folders;
  bool json = false;
};

int run(const ExportOptions& options) {
  bundle::Progress progress;
  const bundle::Trust trust = trust_of(options.bundle, options.prefix);
  const std::string words = trust_words(options.bundle, options.prefix);
  const bundle::VerifiedBundle verified = verified_of(options.bundle, options.prefix, trust);
  VerifiedBundles bases;
  bundle::TrustState known = trust.state;
  known.root = verified.trust().root;  // what the newest root withdrew is not built on either
  for (const std::filesystem::path& path : options.bases) {
    bundle::OpenBundle base = bundle::open(path);
    base.mending = mending_here(path, {}, words);
    // It is older than what was accepted since, and only built on.
    bases.push_back(std::make_shared<const bundle::VerifiedBundle>(
        bundle::verify(base, {.state = known, .allow_downgrade = true}, bundle::system_time())));
  }
  Disk disk;
  const Exported exported = export_bundle(verified, options.folders, options.bundle.threads, disk, progress, bases);
  bundle::print_warnings(exported.warnings);
  bundle::print(options.json, json_of(exported), text_of(exported));
  return 0;
}

}  // namespace

void add_export(bundle::Program& program) {
  const bundle::Verb verb = program.verb("export", "write a bundle's entries as plain files, each byte verified");
  const auto options = std::make_shared<ExportOptions>();
  verb.json(options->json);
  add_bundle_options(verb, options->bundle);
  add_prefix(verb, options->prefix, false);
  verb.option("--wheels", options->folders.wheels, "the folder that gets the wheels");
  verb.option("--models", options->folders.models, "the folder that gets models and data, a folder a repository");
  verb.option("--debs", options->folders.debs, "the folder that gets the Debian packages and their index");
  verb.option("--rpms", options->folders.rpms, "the folder that gets the rpm packages, their repodata and keys");
  verb.option("--programs", options->folders.programs, "the folder that gets the programs");
  verb.option("--images", options->folders.images, "the folder that gets the container images, as an OCI image layout");
  verb.option("--base", options->bases,
              "bundles that wheels of this delta build on: these wheels are then written whole");
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
