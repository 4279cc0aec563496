// SPDX-License-Identifier: Apache-2.0
// Installs one wheel as a bundle would bring it, for tests that compare with other installers: the packer's reading of
// every byte, then a signed bundle, its gate, store, layout and audit.   install_wheel FOLDER WHEEL
// FOLDER/prefix/current is what was installed. A refusal is printed, and its code is the exit code.
#include <cstdio>

#include "installer/apply/apply.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "tests/support/tiny_bundle.hpp"

int main(int argc, char** argv) {
  using namespace sealift;
  namespace fs = std::filesystem;
  if (argc != 3) return 2;
  const fs::path folder = argv[1], file = argv[2];
  try {
    bundle::FileSource source(file);
    bundle::Wheel wheel(source, file.filename().string());
    std::size_t misdescribed = wheel.idle_rows();
    for (const bundle::WheelFile& member : wheel.files()) {
      wheel.extract(member, [](bundle::ByteView) {});
      misdescribed += member.misdescribed ? 1 : 0;
    }
    std::printf("misdescribed %zu, bytecode %zu\n", misdescribed, wheel.left_out_bytecode());
    const test::TinyBundle tiny{.chunk_size = bundle::kDefaultChunkSize,
                                .installed_files = 1'000'000,
                                .items = {{.path = "wheels/" + file.filename().string(),
                                           .kind = bundle::EntryKind::Wheel,
                                           .bytes = test::read_file(file)}}};
    const test::MadeBundle made = test::make_bundle(folder / "bundle", tiny);
    installer::Disk disk;
    bundle::Progress silent(nullptr);
    installer::apply(
        {.bundle = made.folder,
         .prefix = installer::Prefix(folder / "prefix"),
         .fingerprint = made.trusted.state.pinned,
         .now = test::kNow,
         .machine = {.target = {.arch = "x86_64", .glibc = {2, 36}, .kernel = "6.1"}, .libc = "/lib/libc.so.6"},
         .threads = 2},
        disk, silent);
    return 0;
  } catch (const bundle::Error& error) {
    std::printf("refused: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
