// SPDX-License-Identifier: Apache-2.0
// What an installation asks of the medium and of the processor, in counts: each byte is read once, hashed once, in its
// chunk, and written once. And a medium that fails in the middle, at every one of its reads.
#include "installer/mend/mend.hpp"
#include "installer/preflight/volume_check.hpp"
#include "tests/installer/crash_scenarios.hpp"
#include "tests/support/system_calls.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

[[maybe_unused]] const bool kMediaInMemory = (use_memory_for_temporary_folders(), true);

// Wheels of which many share a chunk, some have several, and one has more than a reader keeps in memory, with folders
// all through it.
TinyBundle many_sizes() {
  TinyBundle tiny{.chunk_size = 65536, .volume_size = 5 << 20, .installed_files = 100, .items = {}};
  for (int i = 0; i < 60; ++i) {
    const std::string name = "w" + std::to_string(10 + i);
    std::map<std::string, std::string> files = modules_of(name, 1 + i % 5);
    if (i % 7 == 0) files[name + "/big.bin"] = random_bytes(i, 150'000);
    for (int part = 0; i == 30 && part < 16; ++part) {
      const std::string folder = name + "/p" + std::to_string(part) + "/";
      files[folder] = "";  // written as a member of its own, as in torch's wheels
      files[folder + "large.bin"] = random_bytes(static_cast<std::uint32_t>(part), 1 << 20);
    }
    tiny.items.push_back(wheel_item({.name = name, .files = files}));
  }
  std::vector<std::pair<bundle::TarMember, std::string>> members;
  for (int i = 0; i < 40; ++i) members.push_back({tar_file("lib/t" + std::to_string(i)), numbers_text(i, 900)});
  tiny.items.push_back(tree_item("trees/base.tar", members));
  tiny.items.push_back(file_item("files/a", numbers_text(1, 30'000), "share/a"));
  return tiny;
}

struct Counted {
  std::uint64_t read, hashed, written, payload;
  std::uint64_t on_disk;       // bytes of all files of the prefix, each once
  std::uint64_t least_hashed;  // each chunk once, and what this machine writes down of its own
};

Counted counts_of_apply(const Site& site, const MadeBundle& made) {
  SystemCalls calls;
  calls.medium = made.folder;
  FaultyDisk disk;
  {
    const Watch watch(calls);
    site.apply(made, disk);
  }
  Counted counted{.read = calls.bytes_read,
                  .hashed = calls.bytes_hashed,
                  .written = disk.bytes_written(),
                  .payload = made.manifest.payload.size,
                  .on_disk = 0,
                  .least_hashed = made.manifest.payload.size};
  // Signatures and identity are digests of the manifest, the list has one, and a record is hashed when it is written.
  counted.least_hashed += 4 * fs::file_size(made.seal()) + fs::file_size(made.chunks());
  for (const auto& [path, there] : read_image(site.prefix().folder())) {
    if (there.twin != path || there.node.type != DiskNode::Type::File || path == "lock") continue;
    counted.on_disk += there.node.data.size();
    const std::string name = fs::path(path).filename();
    const bool brought = name != "record.json" && name != "RECORD" && name != "stamps" && path.starts_with("store/");
    if (!brought) counted.least_hashed += 2 * there.node.data.size();
  }
  return counted;
}

}  // namespace

TEST_CASE("apply reads and hashes each byte of the medium once, and hashes and copies nothing that it unpacks") {
  for (const unsigned threads : {1u, 4u}) {
    CAPTURE(threads);
    Site site;
    site.threads = threads;
    const Counted counted = counts_of_apply(site, site.make(many_sizes()));
    MESSAGE("read " << counted.read << ", hashed " << counted.hashed << ", written " << counted.written << " of "
                    << counted.payload << ", " << counted.least_hashed << ", " << counted.on_disk);
    CHECK(counted.read >= counted.payload);
    CHECK(counted.read <= counted.payload / 100 * 102);
    CHECK(counted.hashed >= counted.payload);
    CHECK(counted.hashed <= counted.least_hashed);
    CHECK(counted.hashed < counted.payload + counted.on_disk / 2);  // nothing of what was unpacked
    CHECK(counted.written == counted.on_disk);
  }
}

TEST_CASE("a second environment reads nothing of a store that nobody has touched, neither files nor their records") {
  Site site;
  TinyBundle tiny = many_sizes();
  site.apply(site.make(tiny, "first"));
  tiny.version = 2;
  const MadeBundle second = site.make(tiny, "second");
  SystemCalls calls;
  calls.medium = site.prefix().store();
  const auto apply = [&] {
    const Watch watch(calls);
    CHECK(site.apply(second).hashed == 0);
  };
  SUBCASE("") {
    apply();
    CHECK(calls.bytes_read == 0);
  }
  SUBCASE("and all records where the stamps are gone") {
    fs::remove(site.prefix().stamps());
    const Watch watch(calls);
    site.apply(second);
    CHECK(calls.bytes_read > 62 * 200);
  }
}

TEST_CASE("a file of the store that is written to while it is hashed goes into no generation") {
  const Site site;
  TinyBundle tiny{.items = {file_item("files/a", numbers_text(1, 3000), "share/a")}};
  site.apply(site.make(tiny, "first"));
  tiny.version = 2;
  const MadeBundle second = site.make(tiny, "second");
  const fs::path file = site.current() / "share/a";
  const std::uint64_t size = fs::file_size(file);
  fs::remove(site.prefix().stamps());  // so that its bytes count, not its stamp
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  SystemCalls calls;
  std::atomic<int> edits = 0;
  calls.after_hash = [&](std::size_t count) {
    if (count == size && ++edits == 1) flip_bit(file, 3);
  };
  Disk disk;
  {
    const Watch watch(calls);
    CHECK_REFUSED(site.apply(second, disk), Digest, "a file that changes while it is read");
  }
  CHECK(edits == 1);
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
  CHECK(!fs::exists(site.prefix().generation(2)));
}

TEST_CASE("no chunk of a wheel that threads share is read or hashed twice, however many they are") {
  for (const unsigned threads : {1u, 2u, 8u}) {
    CAPTURE(threads);
    Site site;
    site.threads = threads;
    const MadeBundle made = site.make(one_large_wheel());
    const Counted counted = counts_of_apply(site, made);
    const std::uint64_t once = counted.payload + fs::file_size(made.seal()) + fs::file_size(made.chunks());
    CHECK(counted.read >= once);
    CHECK(counted.read < once + made.manifest.payload.chunk_size);
    CHECK(counted.hashed <= counted.least_hashed);
  }
}

TEST_CASE("a medium that fails at any of its reads is named with volume and offset, and the next run goes on") {
  const CrashSite site;
  SystemCalls calls;
  calls.medium = site.first.folder;
  {
    const Watch watch(calls);
    TestDisk disk;
    site.apply(site.first, disk);
  }
  const DiskImage after = comparable(read_image(site.prefix().folder()));
  const std::uint64_t reads = calls.reads;
  CHECK(reads >= site.first.manifest.payload.chunk_count() + 2);  // and the seal and the list of chunks
  for (const int error : {EIO, ESTALE, ENXIO})
    for (std::uint64_t k = 1; k <= reads; ++k) {
      CAPTURE(k);
      write_image({}, site.prefix().folder());
      TestDisk disk;
      calls.reads = 0;
      calls.fails_at = k;
      calls.error = error;
      {
        const Watch watch(calls);
        CHECK_REFUSED(site.apply(site.first, disk), Io, site.first.folder.string());
      }
      CHECK(!fs::exists(site.prefix().store()));
      CHECK(!fs::exists(site.current()));
      site.apply(site.first, disk);
      REQUIRE(difference(comparable(read_image(site.prefix().folder())), after) == "");
    }
}

TEST_CASE("a volume with a place that cannot be read is read to its end all the same, and names that place alone") {
  const Site site;
  const MadeBundle made = site.make(many_sizes());
  const fs::path disc = site.dir / "disc", file = disc / made.volume(1).filename();
  fs::create_directories(disc);
  fs::copy_file(made.volume(1), file);
  flip_bit(file, 8 * (fs::file_size(file) - 1));
  const bundle::ChunkLayout layout(made.manifest.payload);
  const std::uint64_t begin = made.manifest.payload.volumes[0].size, first = layout.at(begin);
  SystemCalls calls;
  calls.medium = disc;
  calls.fails_at = 3;
  bundle::Progress silent(nullptr);
  const auto check = [&] {
    const Watch watch(calls);
    return check_volume(bundle::open(made.folder), file, made.trusted, kNow, 1, silent);
  }();
  REQUIRE(check.bad.size() == 2);
  CHECK(check.bad[0].fault.code() == bundle::ErrorCode::Io);
  CHECK(check.bad[0].first_chunk == first + 2);
  CHECK(check.bad[0].chunks == 1);
  CHECK(check.bad[0].offset == layout.begin_of(first + 2) - begin);
  CHECK(std::string(check.bad[0].fault.what()).find("cannot be read") != std::string::npos);
  CHECK(check.bad[1].fault.code() == bundle::ErrorCode::Digest);
  CHECK(check.bad[1].first_chunk == first + check.chunks - 1);
  CHECK(calls.bytes_read + check.bad[0].size == check.bytes);
}

TEST_CASE("a storm of interrupted calls, short reads and short writes changes nothing") {
  const CrashSite site;
  Disk disk;
  site.apply(site.first, disk);
  const DiskImage after = comparable(read_image(site.prefix().folder()));
  write_image({}, site.prefix().folder());
  SystemCalls calls;
  calls.storm = true;
  {
    const Watch watch(calls);
    site.apply(site.first, disk);
  }
  CHECK(calls.calls > 500);
  CHECK(difference(comparable(read_image(site.prefix().folder())), after) == "");
}

TEST_CASE("a place that cannot be read, when it is looked for or only later, is mended as any other damage") {
  const Site site;
  TinyBundle tiny{.volume_size = 65536, .items = {}, .recovery = 60};
  tiny.items.push_back(file_item("files/a", numbers_text(1, 12'000), "share/a"));
  const MadeBundle made = site.make(tiny);
  REQUIRE(made.manifest.payload.volumes.size() >= 2);
  std::vector<std::string> whole;
  for (std::size_t i = 0; i < made.manifest.payload.volumes.size(); ++i) whole.push_back(read_file(made.volume(i)));
  flip_bit(made.volume(1), 9);  // so that there is something to mend in each run
  SystemCalls calls;
  calls.medium = made.folder;
  bundle::Progress silent(nullptr);
  const auto mend_into = [&](const fs::path& into) {
    Disk disk;
    const Watch watch(calls);
    calls.reads = 0;
    return mend(bundle::open(made.folder), into, made.trusted, kNow, 1, disk, silent);
  };
  mend_into(site.dir / "first");
  const std::uint64_t reads = calls.reads, surveyed = made.manifest.payload.chunk_count();
  REQUIRE(reads > 2 * surveyed);
  std::size_t mended = 0;
  for (std::uint64_t k = 4; k <= reads; k += 3) {  // behind the seal and both lists
    CAPTURE(k);
    calls.fails_at = k;
    const fs::path into = site.dir / ("into" + std::to_string(k));
    try {
      const Mended result = mend_into(into);
      for (const std::string& name : result.volumes)
        CHECK(read_file(result.folder / name) == whole[name.ends_with("1") ? 0 : name.ends_with("2") ? 1 : 2]);
      ++mended;
    } catch (const bundle::Error& error) {  // a small file that nothing stands for: seal, lists
      CHECK(error.code() == bundle::ErrorCode::Io);
      CHECK(!fs::exists(into / made.manifest.stem()));
    }
    fs::remove_all(into);
  }
  CHECK(mended * 3 >= reads - 30);
}
