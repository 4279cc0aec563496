// SPDX-License-Identifier: Apache-2.0
// mount and unmount: an image as a folder, checked at each read, without root.
#include <memory>
#include <optional>

#include "installer/mount/background.hpp"
#include "installer/mount/mount_image.hpp"
#include "installer/print/mount_report.hpp"
#include "installer/verbs/shared_options.hpp"
#include "installer/verbs/verbs.hpp"

namespace sealift::installer {

namespace {

struct MountArguments {
  MountOptions mount;
  std::string digest;
  bool foreground = false;
  bool json = false;
};

int run(const MountArguments& arguments) {
  MountOptions options = arguments.mount;
  refuse_without_image(options.image);
  const std::optional<bundle::Digest> digest = fingerprint_of(arguments.digest);
  if (!digest)
    throw bundle::Error(bundle::ErrorCode::Usage, {.what = "the image's digest is not given",
                                                   .where = options.image.string(),
                                                   .expected = "--digest sha256:..., from a source that you trust",
                                                   .next = "take what `sealift-install image` printed"});
  options.digest = *digest;
  std::optional<Background> background;
  if (!arguments.foreground) background.emplace();
  mount_image(options, [&](const Mounted& mounted) {
    bundle::print(arguments.json, json_of(mounted), text_of(mounted));
    if (background) background->ready();
  });
  return 0;
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
  verb.option("IMAGE", arguments->mount.image, "the image; its chunk list lies beside it").required();
  verb.option("DIR", arguments->mount.folder, "the folder that shows it").required();
  verb.option("--digest", arguments->digest, "what `image` printed (sha256:...): the digest of the chunk list");
  verb.option("--log", arguments->mount.log, "the file that gets a line for each fault (default: the system's log)");
  verb.option("--prefetch", arguments->mount.prefetch,
              "a file of yours that keeps what a start read: that is fetched ahead now, and noted anew at the end");
  verb.option("--memory", arguments->mount.memory, "how many bytes of checked chunks are kept").bytes();
  verb.option("--patience", arguments->mount.patience,
              "seconds after which a read that the medium does not answer is an error for the program");
  verb.flag("--allow-other", arguments->mount.everybody, "other users see the folder, too, as /etc/fuse.conf allows");
  verb.flag("--foreground", arguments->foreground, "serve in this process, as a systemd unit does");
  verb.action([arguments] { return run(*arguments); });
}

void add_unmount(bundle::Program& program) {
  const bundle::Verb verb = program.verb("unmount", "end what `mount` began");
  const auto arguments = std::make_shared<UnmountArguments>();
  verb.json(arguments->json);
  verb.option("DIR", arguments->folder, "the folder that shows an image").required();
  verb.action([arguments] { return run(*arguments); });
}

}  // namespace sealift::installer
