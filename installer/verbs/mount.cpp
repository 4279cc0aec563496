// SPDX-License-Identifier: Apache-2.0
// mount and unmount: an image, in a file or in a bundle, as a folder, checked at each read, without root.
#include <functional>
#include <memory>
#include <optional>

#include "installer/mount/background.hpp"
#include "installer/mount/carried_image.hpp"
#include "installer/mount/mount_image.hpp"
#include "installer/print/mount_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct MountArguments {
  MountOptions mount;
  BundleOptions bundle;  // its `bundle` is the image of `mount`
  std::filesystem::path prefix;
  std::string digest;
  bool foreground = false;
  bool json = false;
};

[[noreturn]] void refuse_option(const std::filesystem::path& image, std::string what, std::string next) {
  throw bundle::Error(bundle::ErrorCode::Usage,
                      {.what = std::move(what), .where = image.string(), .next = std::move(next)});
}

void refuse_options_of_bundles(const MountArguments& arguments) {
  const BundleOptions& bundle = arguments.bundle;
  if (arguments.prefix.empty() && bundle.volumes.empty() && bundle.fingerprint.empty() && !bundle.allow_downgrade &&
      !bundle.sandboxed_builds_only)
    return;
  refuse_option(arguments.mount.image, "the file of an image was given, and options that say which bundle is believed",
                "leave them out, and give --digest; or give a bundle that carries an image");
}

// Runs `mount` in the background, unless that is not wanted; it gets what to call once the folder is there.
int run(const MountArguments& arguments, const std::function<void(const std::function<void(const Mounted&)>&)>& mount) {
  std::optional<Background> background;
  if (!arguments.foreground) background.emplace();
  mount([&](const Mounted& mounted) {
    bundle::print(arguments.json, json_of(mounted), text_of(mounted));
    if (background) background->ready();
  });
  return 0;
}

// The server outlives its caller's folder, so that no path is relative to that.
BundleOptions absolute(BundleOptions options) {
  options.bundle = std::filesystem::absolute(options.bundle).lexically_normal();
  for (std::filesystem::path& folder : options.volumes) folder = std::filesystem::absolute(folder).lexically_normal();
  return options;
}

int run_bundle(const MountArguments& arguments) {
  if (!arguments.digest.empty())
    refuse_option(
        arguments.mount.image, "a bundle was given, and the digest of an image's file",
        "leave --digest out: the bundle's seal vouches for the image; --fingerprint, or --prefix, says whose");
  BundleOptions options = arguments.bundle;
  options.bundle = arguments.mount.image;
  options = absolute(std::move(options));
  return run(arguments, [&](const auto& ready) {
    const bundle::VerifiedBundle verified =
        verified_of(options, arguments.prefix, trust_of(options, arguments.prefix), false);
    bundle::print_warnings(verified.warnings());
    mount_bundle(verified, arguments.mount, ready);
  });
}

int run(const MountArguments& arguments) {
  if (names_bundle(arguments.mount.image)) return run_bundle(arguments);
  refuse_without_image(arguments.mount.image);
  refuse_options_of_bundles(arguments);
  MountOptions options = arguments.mount;
  const std::optional<bundle::Digest> digest = fingerprint_of(arguments.digest);
  if (!digest)
    throw bundle::Error(bundle::ErrorCode::Usage, {.what = "the image's digest is not given",
                                                   .where = options.image.string(),
                                                   .expected = "--digest sha256:..., from a source that you trust",
                                                   .next = "take what `sealift-install image` printed"});
  options.digest = *digest;
  return run(arguments, [&](const auto& ready) { mount_image(options, ready); });
}

struct UnmountArguments {
  std::filesystem::path folder;
  bool json = false;
};

int run(const UnmountArguments& arguments) {
  unmount_image(arguments.folder);
  bundle::print(arguments.json, {{"folder", arguments.folder.string()}, {"mounted", false}},
                "unmounted " + arguments.folder.string() + "\n");
  return 0;
}

}  // namespace

void add_mount(bundle::Program& program) {
  const bundle::Verb verb = program.verb("mount", "show an image as a folder, each read checked; root is not needed");
  const auto arguments = std::make_shared<MountArguments>();
  verb.json(arguments->json);
  verb.option("IMAGE", arguments->mount.image, "the image, its chunk list beside it; or a bundle that carries one")
      .required();
  verb.option("DIR", arguments->mount.folder, "the folder that shows it").required();
  verb.option("--digest", arguments->digest,
              "of a file: what `image` printed (sha256:...), the digest of its chunk list");
  add_bundle_trust(verb, arguments->bundle);
  add_prefix(verb, arguments->prefix, false);
  verb.option("--log", arguments->mount.log, "the file that gets a line for each fault (default: the system's log)");
  verb.option(
      "--prefetch", arguments->mount.prefetch,
      "a file of yours that lists what a start reads: mount fetches it ahead and writes the list anew at the end");
  verb.option("--memory", arguments->mount.memory, "how many bytes of checked chunks are kept").bytes();
  verb.option("--patience", arguments->mount.patience,
              "seconds after which a read that the medium does not answer is an error for the program");
  verb.flag("--allow-other", arguments->mount.everybody, "other users see the folder, too, as /etc/fuse.conf allows");
  verb.flag("--foreground", arguments->foreground, "serve in this process, as a systemd unit does");
  verb.action([arguments] { return run(*arguments); });
}

void add_unmount(bundle::Program& program) {
  const bundle::Verb verb = program.verb("unmount", "end a mount");
  const auto arguments = std::make_shared<UnmountArguments>();
  verb.json(arguments->json);
  verb.option("DIR", arguments->folder, "the folder that shows an image").required();
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
