// SPDX-License-Identifier: Apache-2.0
// verify: reads every byte of a bundle. All failures go to stderr, and the first one's code is the exit code.
#include <fcntl.h>

#include <memory>

#include "installer/prefix/prefix.hpp"
#include "installer/print/verification_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace {

struct VerifyOptions {
  BundleOptions bundle;
  std::filesystem::path prefix;  // whose trust is read; empty: none
  bool deep = false;             // also what the chunks do not say
  bool json = false;
};

int run(const VerifyOptions& options) {
  bundle::Progress progress;
  const std::filesystem::path folder = options.prefix.empty() ? "" : Prefix(options.prefix).trust();
  const bundle::Trust trust{.state = bundle::trust_for_run(folder, fingerprint_of(options.bundle.fingerprint)),
                            .allow_downgrade = options.bundle.allow_downgrade};
  bundle::OpenBundle opened = bundle::open(options.bundle.bundle);
  opened.more_folders = options.bundle.volumes;
  const Verification result =
      verify_every_byte(opened, trust, bundle::system_time(), options.bundle.threads, progress, options.deep);
  bundle::print_warnings(result.warnings);
  if (result.failures.empty() || options.json) bundle::print(options.json, json_of(result), text_of(result));
  for (const bundle::Error& failure : result.failures) bundle::print_error(failure);
  return result.failures.empty() ? 0 : result.failures.front().exit_code();
}

}  // namespace

void add_verify(bundle::Program& program) {
  const bundle::Verb verb = program.verb("verify", "read every byte of a bundle and say whether it is whole");
  const auto options = std::make_shared<VerifyOptions>();
  verb.json(options->json);
  add_bundle_options(verb, options->bundle);
  add_prefix(verb, options->prefix, false);
  verb.flag("--deep", options->deep,
            "also compare each entry with the SHA-256 under which it was published, and each file with its list");
  verb.action([options] { return run(*options); });
}

}  // namespace sealift::installer
