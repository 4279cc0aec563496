// SPDX-License-Identifier: Apache-2.0
// The real program mounts images by FUSE, as root and as nobody: what programs see there, what they do not get when the
// medium changes, and what is said where FUSE is missing. Where this machine has no FUSE, a line says so.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <random>
#include <thread>

#include "installer/host/fuse_needs.hpp"
#include "installer/image/image_chunks.hpp"
#include "installer/image/make_image.hpp"
#include "installer/mount/fuse_ready.hpp"
#include "installer/mount/start_record.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "tests/installer/host_python.hpp"
#include "tests/installer/mount/fuse_here.hpp"
#include "tests/support/image_trees.hpp"
#include "tests/support/shown_image.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

constexpr uid_t kNobody = 65534;

void become_nobody() {
  if (::geteuid() != 0) return;
  if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(97);
}

// An image with its list in a folder that everybody may look into, and an empty folder of nobody's.
struct Shown {
  explicit Shown(const PlainTree& tree) {
    fs::permissions(dir.path(), static_cast<fs::perms>(0755));
    fs::create_directory(folder);
    if (::geteuid() == 0 && ::chown(folder.c_str(), kNobody, kNobody) != 0) throw std::runtime_error("chown");
    write_image_of(tree, image);
    const bundle::Bytes list = write_chunk_list(digest_chunks(image, 2));
    write_file(chunk_list_of(image), std::string(reinterpret_cast<const char*>(list.data()), list.size()));
    digest = bundle::fingerprint_text(bundle::sha256(list));
  }
  ~Shown() {
    if (is_our_mount(folder)) run_in_shell("fusermount3 -uz " + folder.string());
  }

  Outcome mount(std::vector<std::string> more = {}, Preparation prepare = nullptr) {
    std::vector<std::string> words{"mount", image, folder, "--digest", digest, "--log", log};
    words.insert(words.end(), more.begin(), more.end());
    return run(dir, words, nullptr, prepare);
  }
  Outcome unmount(Preparation prepare = nullptr) { return run(dir, {"unmount", folder}, nullptr, prepare); }

  TempDir dir;
  fs::path image = dir / "image", folder = dir / "shown", log = dir / "log";
  std::string digest;
};

// Pages of the file that lie in memory from `begin` to `end`.
std::size_t pages_in_memory(const fs::path& path, std::size_t begin, std::size_t end) {
  const bundle::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* const mapped = ::mmap(nullptr, end - begin, PROT_READ, MAP_SHARED, file.get(), static_cast<off_t>(begin));
  REQUIRE(mapped != MAP_FAILED);
  std::vector<unsigned char> pages((end - begin + 4095) / 4096);
  REQUIRE(::mincore(mapped, end - begin, pages.data()) == 0);
  ::munmap(mapped, end - begin);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

// Whether the file's pages have left memory; a file system in memory keeps them.
bool forget_pages(const fs::path& path) {
  const bundle::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::fsync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  return pages_in_memory(path, 0, fs::file_size(path)) == 0;
}

}  // namespace

TEST_CASE("an image mounted by FUSE shows what is in it, read only, and goes away by unmount") {
  if (!fuse_is_there(true)) return;
  const PlainTree tree = each_kind_of_file();
  Shown shown(tree);
  const Outcome mounted = shown.mount({"--json"});
  INFO(mounted.err);
  REQUIRE(mounted.exit == 0);
  CHECK((without_twins(read_image(shown.folder)) == tree.expected()));
  CHECK(run_in_shell((shown.folder / "bin/alias").string()).output == "tool\n");
  CHECK(::open((shown.folder / "new").c_str(), O_WRONLY | O_CREAT, 0644) < 0);
  CHECK(errno == EROFS);
  struct statvfs room {};
  REQUIRE(::statvfs(shown.folder.c_str(), &room) == 0);
  CHECK((room.f_flag & (ST_RDONLY | ST_NODEV | ST_NOSUID)) == (ST_RDONLY | ST_NODEV | ST_NOSUID));
  CHECK(shown.mount().exit == static_cast<int>(bundle::ErrorCode::Conflict));  // twice
  CHECK(shown.unmount().exit == 0);
  CHECK(ends(process_of(mounted)));
  CHECK(fs::is_empty(shown.folder));
  CHECK(shown.unmount().exit == static_cast<int>(bundle::ErrorCode::Missing));
}

TEST_CASE("a user without root mounts an image, and unmounts it") {
  if (!fuse_is_there(false)) return;
  const PlainTree tree = each_kind_of_file();
  Shown shown(tree);
  shown.log.clear();  // nobody may write none here
  const Outcome mounted =
      run(shown.dir, {"mount", shown.image, shown.folder, "--digest", shown.digest, "--json"}, nullptr, become_nobody);
  INFO(mounted.err);
  REQUIRE(mounted.exit == 0);
  const auto as_nobody = [&](const std::string& command) {
    return run_in_shell(::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '" + command + "'"
                                         : command);
  };
  const std::string there = shown.folder.string();
  CHECK(as_nobody(there + "/bin/tool").output == "tool\n");
  CHECK(as_nobody("cat " + there + "/lib/blocks_and_an_end | wc -c").output ==
        std::to_string(tree.paths.at("lib/blocks_and_an_end").size()) + "\n");
  CHECK(shown.unmount(become_nobody).exit == 0);
  CHECK(ends(process_of(mounted)));
}

TEST_CASE("a bit that changes on the medium while an image is mounted is EIO and a line with its place") {
  if (!fuse_is_there(true)) return;
  PlainTree tree;
  for (int i = 0; i < 60; ++i) tree.paths["f" + std::to_string(100 + i)] = noise(400'000, static_cast<unsigned>(i));
  Shown shown(tree);
  REQUIRE(shown.mount({"--memory", "4194304"}).exit == 0);
  const std::uint64_t bit = 8 * (9'000'000 + 17);  // in the third chunk
  flip_bit(shown.image, bit);
  int bad = 0;
  for (const auto& [name, bytes] : tree.paths) {
    const std::string error = read_error(shown.folder / name);
    if (error.empty()) {
      CHECK(read_file(shown.folder / name) == bytes);
      continue;
    }
    CHECK(error == "EIO");
    ++bad;
  }
  CHECK(bad > 0);
  CHECK(bad < 60);
  const std::string log = read_file(shown.log);
  CHECK(log.find(shown.folder.string()) != std::string::npos);
  CHECK(log.find("image at offset 8388608") != std::string::npos);
  CHECK(std::count(log.begin(), log.end(), '\n') == 1);  // one chunk, one line
  flip_bit(shown.image, bit);                            // the medium is good again
  for (const auto& [name, bytes] : tree.paths) CHECK(read_file(shown.folder / name) == bytes);
  CHECK(shown.unmount().exit == 0);
}

TEST_CASE("an image is not mounted by another list, another digest, a changed table, on no folder or over files") {
  if (!fuse_is_there(true)) return;
  Shown shown(each_kind_of_file());
  const auto refused = [&](bundle::ErrorCode code, const std::string& text) {
    const Outcome outcome = shown.mount();
    INFO(outcome.err);
    CHECK(outcome.exit == static_cast<int>(code));
    CHECK(outcome.err.find(text) != std::string::npos);
    CHECK(!is_our_mount(shown.folder));
  };
  const std::string digest = shown.digest;
  shown.digest = "sha256:" + std::string(64, '0');
  refused(bundle::ErrorCode::Digest, "chunk list");
  shown.digest = digest;
  const std::string list = read_file(chunk_list_of(shown.image));
  write_file(chunk_list_of(shown.image), list.substr(1) + "x");
  refused(bundle::ErrorCode::Digest, "chunk list");
  fs::remove(chunk_list_of(shown.image));
  refused(bundle::ErrorCode::Missing, "chunk list");
  write_file(chunk_list_of(shown.image), list);
  flip_bit(shown.image, 8 * 30);
  refused(bundle::ErrorCode::Digest, "image at offset 0");
  flip_bit(shown.image, 8 * 30);
  write_file(shown.folder / "mine", "would be hidden");
  refused(bundle::ErrorCode::Conflict, "not empty");
  fs::remove(shown.folder / "mine");
  fs::remove(shown.folder);
  refused(bundle::ErrorCode::Missing, "mkdir -p");
}

TEST_CASE("where FUSE is missing, what is missing is named, and what to do") {
  const TempDir dir;
  CHECK_REFUSED(require_fuse({.device = dir / "fuse", .root = true}), Platform, "modprobe fuse");
  CHECK_REFUSED(require_fuse({.device = dir / "fuse", .root = true}), Platform, "sealift-install apply");
  write_file(dir / "fuse", "");
  write_file(dir / "helper", "");
  CHECK_REFUSED(require_fuse({.device = dir / "fuse", .helper = dir / "none"}), Platform, "package fuse3");
  CHECK_REFUSED(require_fuse({.device = dir / "fuse", .helper = dir / "helper"}), Platform, "set-user-ID");
  require_fuse({.device = dir / "fuse", .root = true});
  CHECK(fuse_missing({.device = dir / "fuse", .root = true}).empty());
  CHECK(fuse_missing({.device = dir / "none", .root = true}).find("apply") != std::string::npos);
}

TEST_CASE("a server that is killed is an error for who reads, and the folder can be mounted again") {
  if (!fuse_is_there(true)) return;
  const PlainTree tree = each_kind_of_file();
  Shown shown(tree);
  const Outcome mounted = shown.mount({"--json"});
  REQUIRE(mounted.exit == 0);
  ::kill(process_of(mounted), SIGKILL);
  CHECK(ends(process_of(mounted)));
  CHECK(read_error(shown.folder / "lib/one_block") == "cannot be opened");
  CHECK(shown.unmount().exit == 0);
  REQUIRE(shown.mount().exit == 0);
  CHECK((without_twins(read_image(shown.folder)) == tree.expected()));
  CHECK(shown.unmount().exit == 0);
}

TEST_CASE("what a start read is noted at the end, and fetched ahead at the next one of the same image") {
  const TempDir dir;
  const bundle::Digest image = bundle::sha256(bundle::as_bytes("image")), other = bundle::sha256({});
  const fs::path file = dir / "start";
  CHECK(read_start_record(file, image, 10).empty());
  write_start_record(file, image, {3, 1, 9});
  write_start_record(file, image, {3, 1, 8});
  CHECK(read_start_record(file, image, 10) == std::vector<std::uint64_t>{3, 1, 8});
  CHECK(read_start_record(file, image, 8).empty());  // of fewer chunks
  CHECK(read_start_record(file, other, 10).empty());
  const std::string good = read_file(file);
  for (const std::string more : {"x\n", "1", "-1\n", "99999999999999999999999\n", "\n"}) {
    write_file(file, good + more);
    CHECK(read_start_record(file, image, 10).empty());
  }
  write_file(file, good + "3\n3\n");
  CHECK(read_start_record(file, image, 10).size() == 3);
  write_file(file, good + std::string(2 << 20, '1'));
  CHECK(read_start_record(file, image, 10).empty());
  if (!fuse_is_there(true)) return;

  Shown shown({.paths = {{"a", noise(5'000'000, 1)}, {"b", noise(20'000'000, 2)}, {"c", noise(5'000'000, 3)}}});
  const auto mounted = [&] {
    const Outcome outcome = shown.mount({"--json", "--prefetch", file});
    REQUIRE(outcome.exit == 0);
    return bundle::parse_json(outcome.out, "stdout");
  };
  const bundle::Json first = mounted();
  CHECK(first.at("prefetched") == 0);
  CHECK(read_error(shown.folder / "c").empty());
  CHECK(shown.unmount().exit == 0);
  CHECK(ends(first.at("process").get<int>()));
  constexpr std::size_t kChunk = bundle::kDefaultChunkSize;
  bool forgotten = forget_pages(shown.image);
  if (forgotten) {  // mounting alone reads the super block and the tables, and what the kernel reads behind them
    const Outcome plain = shown.mount({"--json"});
    REQUIRE(plain.exit == 0);
    const bool far = pages_in_memory(shown.image, 6 * kChunk, 7 * kChunk) == 0;
    CHECK(shown.unmount().exit == 0);
    CHECK(ends(process_of(plain)));
    forgotten = far && forget_pages(shown.image);
  }
  const bundle::Json second = mounted();
  if (forgotten) {  // nobody reads "c" now: what the kernel has of it was fetched ahead
    std::size_t pages = 0;
    for (int i = 0; i < 500 && pages < kChunk / 4096; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      pages = pages_in_memory(shown.image, 6 * kChunk, 7 * kChunk);
    }
    CHECK(pages == kChunk / 4096);
  } else {
    left_out("the file system gives up no pages, or the kernel reads far ahead");
  }
  CHECK(second.at("prefetched") == 4);  // the super block's, and three of "c", of which one has the tables
  CHECK(shown.unmount().exit == 0);
  CHECK(ends(second.at("process").get<int>()));
}

TEST_CASE("a server ends by SIGTERM and leaves an empty folder") {
  if (!fuse_is_there(true)) return;
  Shown shown(each_kind_of_file());
  const Outcome mounted = shown.mount({"--json"});
  REQUIRE(mounted.exit == 0);
  ::kill(process_of(mounted), SIGTERM);
  CHECK(ends(process_of(mounted)));
  CHECK(!is_our_mount(shown.folder));
  CHECK(fs::is_empty(shown.folder));
}

TEST_CASE("a bundle, a prefix or any other folder is no image, and the command that makes one is said") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  const fs::path shown = site.dir / "shown";
  fs::create_directory(shown);
  const auto refused = [&](const fs::path& image, bundle::ErrorCode code, const std::string& text) {
    const Outcome outcome = run(site.dir, {"mount", image, shown});
    INFO(outcome.err);
    CHECK(outcome.exit == static_cast<int>(code));
    CHECK(outcome.err.find(text) != std::string::npos);
  };
  refused(made.folder, bundle::ErrorCode::Signature, "--fingerprint");
  const Outcome none = run(site.dir, {"mount", made.folder, shown, "--fingerprint", made.fingerprint()});
  INFO(none.err);
  CHECK(none.exit == static_cast<int>(bundle::ErrorCode::Missing));
  CHECK(none.err.find("sealift-install image " + made.folder.string() + " -o FILE") != std::string::npos);
  site.apply(made);
  const fs::path prefix = site.prefix().folder();
  refused(prefix, bundle::ErrorCode::Missing, "sealift-install image " + prefix.string() + " -o FILE");
  refused(shown, bundle::ErrorCode::Usage, "a folder is no image");
  write_file(site.dir / "file", "x");
  refused(site.dir / "file", bundle::ErrorCode::Usage, "--digest sha256:");
}

TEST_CASE("a medium that does not answer is EIO after --patience, and what comes late is read") {
  if (!fuse_is_there(true)) return;
  Shown inner({.paths = {{"a", noise(6'000'000, 1)}, {"b", noise(6'000'000, 2)}, {"c", noise(6'000'000, 3)}}});
  Shown outer({.paths = {{"inner", read_file(inner.image)}, {"inner.chunks", read_file(chunk_list_of(inner.image))}}});
  const Outcome medium = outer.mount({"--json", "--memory", "4194304"});
  REQUIRE(medium.exit == 0);
  inner.image = outer.folder / "inner";
  REQUIRE(inner.mount({"--patience", "1"}).exit == 0);
  ::kill(process_of(medium), SIGSTOP);
  const auto began = std::chrono::steady_clock::now();
  const std::string said = read_error(inner.folder / "a");
  const auto took = std::chrono::steady_clock::now() - began;
  ::kill(process_of(medium), SIGCONT);
  CHECK(said == "EIO");
  CHECK(took >= std::chrono::milliseconds(900));
  CHECK(took < std::chrono::seconds(20));
  CHECK(read_file(inner.log).find("does not answer") != std::string::npos);
  CHECK(read_file(inner.folder / "a") == noise(6'000'000, 1));
  CHECK(inner.unmount().exit == 0);
  CHECK(outer.unmount().exit == 0);
}

TEST_CASE("sixty-four mounts of one image at once, each in its own namespace, show it and go away") {
  const std::string unshare = ::geteuid() == 0 ? "unshare -m" : "unshare -rm";
  if (!fuse_is_there(true)) return;
  if (run_in_shell(unshare + " true").status != 0) return left_out("this machine makes no namespaces for mounts");
  Shown shown(each_kind_of_file());
  write_file(shown.dir / "block", noise(bundle::kImageBlock, 1));
  int gate[2];
  REQUIRE(::pipe(gate) == 0);
  ::fcntl(gate[1], F_SETFD, FD_CLOEXEC);  // who reads from the gate waits until all are there
  const std::string program = SEALIFT_INSTALL, folder = shown.folder.string(), dir = shown.dir.path().string(),
                    same = "cmp " + dir + "/block " + folder + "/lib/one_block",
                    command = unshare + " sh -c '" + program + " mount " + shown.image.string() + " " + folder +
                              " --digest " + shown.digest + " --log " + shown.log.string() + " > /dev/null && " + same +
                              " && echo ready && cat <&" + std::to_string(gate[0]) + " && " + same + " && " + program +
                              " unmount " + folder + " > /dev/null && echo ended' 2>&1";
  std::vector<FILE*> all;
  for (int i = 0; i < 64; ++i) all.push_back(::popen(command.c_str(), "r"));
  const auto line_of = [](FILE* stream) {
    char line[400] = "";
    return std::string(std::fgets(line, sizeof line, stream) == nullptr ? "" : line);
  };
  for (FILE* each : all) CHECK(line_of(each) == "ready\n");
  ::close(gate[1]);
  for (FILE* each : all) {
    CHECK(line_of(each) == "ended\n");
    CHECK(::pclose(each) == 0);
  }
  ::close(gate[0]);
  CHECK(!is_our_mount(shown.folder));
}

TEST_CASE("a start from an image asks the shared folder's server for fewer than a hundred names") {
  if (!fuse_is_there(true)) return;
  PlainTree tree;
  for (int i = 0; i < 2000; ++i) tree.paths["module_" + std::to_string(i) + ".py"] = "x = " + std::to_string(i);
  Shown shown(tree);
  const std::string calls = (shown.dir / "calls").string(), program = SEALIFT_INSTALL, folder = shown.folder.string(),
                    trace = "strace -f -qq -e trace=%file,%fstat,getdents64 -o " + calls + " ";
  if (run_in_shell(trace + "true").status != 0) return left_out("strace cannot count calls here");
  const Ran read =
      run_in_shell(trace + program + " mount " + shown.image.string() + " " + folder + " --json --digest " +
                   shown.digest + " --log " + shown.log.string() + " | { read line; cat " + folder + "/* | wc -c; " +
                   program + " unmount " + folder + "; }");
  INFO(read.output);
  CHECK(read.status == 0);
  const std::string log = read_file(calls);
  const auto count = std::count(log.begin(), log.end(), '\n');
  MESSAGE("calls that ask for names or states: ", count);
  CHECK(count > 0);
  CHECK(count <= 100);
}

TEST_CASE("two hundred mutated images are refused or served, and no server dies of one") {
  if (!fuse_is_there(true)) return;
  Shown shown({.paths = {{"bin/", ""},
                         {"bin/tool", "#!/bin/sh\n"},
                         {"bin/alias", ">tool"},
                         {"lib/", ""},
                         {"lib/blocks", std::string(150'000, 'b') + noise(200, 1)},
                         {"lib/small", noise(300, 2)},
                         {"lib/zeros", std::string(140'000, '\0')}}});
  const std::string good = read_file(shown.image);
  const std::size_t used = good.find_last_not_of('\0') + 1;
  std::mt19937 random(51);
  int refused = 0, served = 0;
  for (int round = 0; round < 200; ++round) {
    std::string bytes = good;
    for (int k = 0; k < 1 + round % 4; ++k) {
      const std::size_t at = round % 2 == 0 ? random() % 96 : random() % used;
      const char values[] = {
          '\0', '\xff', '\x80', '\x7f', static_cast<char>(random()), static_cast<char>(bytes[at] ^ 1)};
      bytes[at] = values[random() % 6];
    }
    write_file(shown.image, bytes);
    const bundle::Bytes list = write_chunk_list(digest_chunks(shown.image, 1));
    write_file(chunk_list_of(shown.image), std::string(bundle::as_text(list)));
    shown.digest = bundle::fingerprint_text(bundle::sha256(list));
    const Outcome mounted = shown.mount({"--json"});
    INFO("round ", round, ": ", mounted.err);
    if (mounted.exit != 0) {
      ++refused;
      CHECK((mounted.exit == static_cast<int>(bundle::ErrorCode::Format) ||
             mounted.exit == static_cast<int>(bundle::ErrorCode::CannotCheck)));
      continue;
    }
    ++served;
    std::error_code ignored;
    for (fs::recursive_directory_iterator it(shown.folder, ignored), end; !ignored && it != end;
         it.increment(ignored)) {
      if (!it->is_regular_file(ignored)) continue;
      std::ifstream file(it->path());
      std::string piece(2'000'000, '?');
      file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    }
    CHECK(::kill(process_of(mounted), 0) == 0);
    CHECK(shown.unmount().exit == 0);
  }
  MESSAGE("refused ", refused, ", served ", served);
  CHECK(refused > 20);
  CHECK(served > 20);
}
