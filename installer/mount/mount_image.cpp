// SPDX-License-Identifier: Apache-2.0
// look -> chunk list -> tables -> mount -> serve. The list is read once and its digest compared; after that each chunk
// counts only as far as the list says, whatever becomes of the medium.
#include "installer/mount/mount_image.hpp"

#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "bundle/core/shell_word.hpp"
#include "bundle/image/image_reader.hpp"
#include "installer/host/fuse_needs.hpp"
#include "installer/host/mending.hpp"
#include "installer/image/image_chunks.hpp"
#include "installer/mount/carried_image.hpp"
#include "installer/mount/fuse_ready.hpp"
#include "installer/mount/fuse_server.hpp"
#include "installer/mount/mount_log.hpp"
#include "installer/mount/start_record.hpp"
#include "installer/prefix/require_prefix.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/child_process.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

fs::path without_slash(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::vector<bundle::Digest> chunks_of(const fs::path& image, const bundle::Payload& payload) {
  const fs::path list = chunk_list_of(image);
  std::error_code ignored;
  if (!fs::exists(list, ignored))
    throw Error(ErrorCode::Missing, {.what = "the image's chunk list is not beside it",
                                     .where = list.string(),
                                     .next = "copy it, too, from where the image was made"});
  if (payload.size == 0)
    throw Error(ErrorCode::Format, {.what = "the image is an empty file", .where = image.string()});
  return bundle::read_chunk_list(list, payload);
}

// Where the image lies in a payload whose chunks are checked.
struct Source {
  const bundle::PayloadReader& payload;
  std::uint64_t offset = 0, size = 0;
  std::string name;  // for messages
};

// `mounted` says what is served; here its folder, size and so on are added.
void serve(const Source& source, const MountOptions& options, Mounted mounted,
           const std::function<void(const Mounted&)>& ready) {
  MountLog log(options.log.empty() ? fs::path() : fs::absolute(options.log));
  const bundle::CheckedRange bytes(source.payload, source.offset, source.size, options.memory,
                                   std::chrono::seconds(options.patience));
  const bundle::ImageReader tree(bytes, source.name);
  const fs::path folder = mounted.folder;
  FuseServer server(tree, {.folder = folder,
                           .source = mounted.image.string(),
                           .everybody = options.everybody,
                           .say = [&](const std::string& fault) { log.say(folder.string() + ": " + fault); }});
  const fs::path record = options.prefetch.empty() ? fs::path() : fs::absolute(options.prefetch);
  const std::vector<std::uint64_t> wanted =
      record.empty() ? std::vector<std::uint64_t>()
                     : read_start_record(record, mounted.digest, source.payload.layout().count());
  mounted.size = source.size;
  mounted.names = tree.nodes().size() - 1;
  mounted.prefetched = wanted.size();
  mounted.process = ::getpid();
  ready(mounted);
  const std::jthread ahead([&](const std::stop_token& stop) {
    for (const std::uint64_t chunk : wanted)
      if (!stop.stop_requested()) source.payload.will_need(chunk);
  });
  server.serve();
  if (const auto mended = source.payload.mended(); !mended.empty())
    log.say(folder.string() + ": mended while it was read: " + text_of(mended) + "; replace what these lie on");
  if (record.empty()) return;
  try {
    write_start_record(record, mounted.digest, bytes.chunks_in_order());
  } catch (const Error& error) {
    log.say(folder.string() + ": " + error.what());
  }
}

}  // namespace

void refuse_without_image(const fs::path& asked) {
  const fs::path path = without_slash(asked);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return;
  if (is_prefix(Prefix(path)))
    throw Error(ErrorCode::Missing,
                {.what = "a prefix is no image",
                 .where = path.string(),
                 .expected = "the file of an image",
                 .next = "make one: sealift-install image " + bundle::shell_word(path.string()) +
                         " -o FILE; then: sealift-install mount FILE DIR --digest what it printed"});
  if (fs::is_directory(path, ignored))
    throw Error(ErrorCode::Usage, {.what = "a folder is no image",
                                   .where = path.string(),
                                   .expected = "the file of an image, or a bundle that carries one",
                                   .next = "give the file that `sealift-install image` wrote"});
}

void mount_image(const MountOptions& options, const std::function<void(const Mounted&)>& ready) {
  require_fuse(fuse_needs_here());
  const fs::path image = without_slash(options.image), folder = without_slash(options.folder);
  require_mount_point(folder);
  const bundle::Payload payload = payload_of_image(image, options.digest);
  const bundle::PayloadReader reader(image.parent_path(), payload, chunks_of(image, payload));
  serve({.payload = reader, .offset = 0, .size = payload.size, .name = image.string()}, options,
        {.image = image, .folder = folder, .digest = options.digest}, ready);
}

void mount_bundle(const bundle::VerifiedBundle& bundle, const MountOptions& options,
                  const std::function<void(const Mounted&)>& ready) {
  const bundle::Entry& image = carried_image(bundle);
  require_fuse(fuse_needs_here());
  const fs::path folder = without_slash(options.folder);
  require_mount_point(folder);
  const bundle::Manifest& manifest = bundle.manifest();
  serve({.payload = bundle.payload(),
         .offset = image.offset,
         .size = image.stored_size,
         .name = manifest.stem() + ":" + image.path.text()},
        options,
        {.image = without_slash(options.image),
         .folder = folder,
         .bundle = manifest.name + " version " + std::to_string(manifest.version),
         .digest = manifest.payload.chunk_list_digest},
        ready);
}

void unmount_image(const fs::path& asked) {
  const fs::path folder = without_slash(asked);
  if (!is_our_mount(folder))
    throw Error(ErrorCode::Missing,
                {.what = "no image of ours is mounted there", .where = folder.string(), .next = "look at: mount"});
  const Error busy(ErrorCode::Conflict, {.what = "the image is in use",
                                         .where = folder.string(),
                                         .next = "end what uses it (fuser -vm " + folder.string() + "); then again"});
  if (::geteuid() == 0) {
    if (::umount2(folder.c_str(), UMOUNT_NOFOLLOW) == 0) return;
    if (errno == EBUSY) throw busy;
    bundle::throw_errno("the image cannot be unmounted", folder);
  }
  const bundle::Child child{.arguments = {fuse_needs_here().helper.string(), "-u", "--", folder.string()},
                            .environment = {"PATH=/usr/bin:/bin"},
                            .contained = false};
  const bundle::ChildEnd end = bundle::run_child(child);
  if (end.good()) return;
  if (end.errors.find("busy") != std::string::npos) throw busy;
  throw Error(ErrorCode::Io,
              {.what = "the image cannot be unmounted", .where = folder.string(), .got = end.text(child)});
}

}  // namespace sealift::installer
