// SPDX-License-Identifier: Apache-2.0
// image: an environment as one file that can be mounted.
#include <memory>

#include "installer/image/make_image.hpp"
#include "installer/prefix/require_prefix.hpp"
#include "installer/print/image_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct ImageArguments {
  BundleOptions bundle;  // its `bundle` may be a prefix
  std::filesystem::path prefix;
  std::filesystem::path output;
  bool verity = false;
  bool rebuild = false;
  bool json = false;
};

void refuse_options_of_bundles(const ImageArguments& arguments) {
  const BundleOptions& bundle = arguments.bundle;
  if (arguments.prefix.empty() && bundle.volumes.empty() && bundle.fingerprint.empty() && !bundle.allow_downgrade &&
      !bundle.sandboxed_builds_only && !arguments.rebuild)
    return;
  throw bundle::Error(bundle::ErrorCode::Usage,
                      {.what = "a prefix was given, and options that say which bundle is believed",
                       .where = bundle.bundle.string(),
                       .expected = "PREFIX -o FILE, or BUNDLE -o FILE with these options",
                       .next = "leave them out: what lies in a prefix was verified when it was installed"});
}

int run(const ImageArguments& arguments) {
  bundle::Progress progress;
  Disk disk;
  MadeImage made;
  const ImageRequest request{.file = arguments.output,
                             .verity = arguments.verity,
                             .rebuild = arguments.rebuild,
                             .threads = arguments.bundle.threads};
  if (const Prefix prefix(arguments.bundle.bundle); is_prefix(prefix)) {
    refuse_options_of_bundles(arguments);
    made = image_of_prefix(prefix, request, disk, progress);
  } else {
    const bundle::VerifiedBundle verified =
        verified_of(arguments.bundle, arguments.prefix, trust_of(arguments.bundle, arguments.prefix));
    made = image_of_bundle(verified, request, disk, progress);
  }
  bundle::print_warnings(made.warnings);
  bundle::print(arguments.json, json_of(made), text_of(made));
  return 0;
}

}  // namespace

void add_image(bundle::Program& program) {
  const bundle::Verb verb = program.verb("image", "write an environment as one SquashFS file that can be mounted");
  const auto arguments = std::make_shared<ImageArguments>();
  verb.json(arguments->json);
  add_bundle_options(verb, arguments->bundle);
  add_prefix(verb, arguments->prefix, false);
  verb.option("-o,--output", arguments->output, "the new file").required();
  verb.flag("--verity", arguments->verity, "also write FILE.verity: with it the kernel's dm-verity checks each read");
  verb.flag("--rebuild", arguments->rebuild,
            "of a bundle that carries its image: make it again, and refuse it unless it is the same to the byte");
  verb.footer([] { return "BUNDLE may also be a prefix: its current generation is written.\n"; });
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
