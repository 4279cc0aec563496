// SPDX-License-Identifier: Apache-2.0
// What the real sealift-install keeps to: no socket, each byte of the medium once, and 256 MiB whatever a bundle
// claims.
#include <sys/socket.h>

#include "tests/installer/program.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/no_sockets.hpp"
#include "tests/support/no_threads.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using namespace sealift::bundle;

namespace {

constexpr std::uint64_t kMemory = std::uint64_t{256} << 20;
const bool kSanitized = std::string(SEALIFT_SANITIZE) != "";  // its own memory would be counted

std::vector<std::string> apply_arguments(const Site& site, const MadeBundle& made) {
  return {"apply", made.folder, "--fingerprint", made.fingerprint(), "--prefix", site.prefix().folder()};
}
std::vector<std::string> verify_arguments(const MadeBundle& made) {
  return {"verify", made.folder, "--fingerprint", made.fingerprint()};
}

// How a child ends that runs `action` under the filter.
int ending_of(void (*action)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    forbid_sockets();
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A bundle of one entry whose payload and manifest are what a test says; only the signature is honest.
struct Forged {
  MadeBundle made;

  Forged(const fs::path& folder, const std::string& payload, const std::function<void(Manifest&)>& claim) {
    const PrivateKey key = PrivateKey::generate();
    fs::create_directories(folder);
    made.folder = folder;
    const Envelope root = one_key_root(key);
    made.trusted = pinned(root);
    Manifest& manifest = made.manifest;
    manifest = {.name = "forged", .channel = "test", .version = 1, .created = "2026-01-01T00:00:00Z"};
    manifest.target = {.arch = probe().target.arch, .glibc = {2, 17}};
    manifest.glibc_floor = {2, 17};
    manifest.payload.size = payload.size();
    manifest.payload.volumes = {{.name = "forged-1.vol001", .size = payload.size()}};
    manifest.entries = {{.path = SafePath::parse("data", ""),
                         .size = payload.size(),
                         .sha256 = sha256(as_bytes(payload)),
                         .stored_size = payload.size(),
                         .stored_sha256 = sha256(as_bytes(payload)),
                         .installed_size = 8192,
                         .installed_files = 2}};
    manifest.environment.placements = {{.entry = manifest.entries[0].path, .into = "share/data"}};
    write_file(made.volume(0), payload);
    claim(manifest);
    if (!fs::exists(made.chunks())) write_list(payload);
    write_file(made.seal(),
               write_seal({.roots = {root},
                           .manifest = signed_document(write_manifest(manifest), {&key}, kBundlePayloadType)}));
  }

 private:
  void write_list(const std::string& payload) {
    std::string list;
    for (std::size_t at = 0; at < payload.size(); at += made.manifest.payload.chunk_size)
      list += as_text(sha256(as_bytes(payload).subspan(
                                 at, std::min<std::size_t>(made.manifest.payload.chunk_size, payload.size() - at)))
                          .bytes);
    write_file(made.chunks(), list);
    // The manifest that is sealed below pins this list.
    made.manifest.payload.chunk_list_digest = sha256(as_bytes(list));
  }
};

// Ten GiB of zeros as one zstd frame of 330 kB: blocks of 128 KiB that are a byte and how often it stands there.
std::string zeros_bomb(std::uint64_t claimed_size, int window_log) {
  std::string frame("\x28\xb5\x2f\xfd\xc4");
  frame += static_cast<char>((window_log - 10) << 3);
  for (int i = 0; i < 8; ++i) frame += static_cast<char>(claimed_size >> 8 * i & 255);
  for (int left = 81920; left > 0; --left) frame += std::string(left == 1 ? "\x03\x00\x10\x00" : "\x02\x00\x10\x00", 4);
  return frame + "none";
}

}  // namespace

TEST_CASE("the filter lets a program live that opens no socket, and kills the others, also after exec") {
  CHECK(ending_of([] {}) == 0);
  CHECK(ending_of([] { ::close(::socket(AF_INET, SOCK_STREAM, 0)); }) == 128 + SIGSYS);
  CHECK(ending_of([] { ::close(::socket(AF_UNIX, SOCK_DGRAM, 0)); }) == 128 + SIGSYS);
  CHECK(ending_of([] {
          int pair[2];
          (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        }) == 128 + SIGSYS);
  CHECK(ending_of([] { ::execl("/bin/sh", "sh", "-c", ":", nullptr); }) == 0);
  CHECK(ending_of([] { ::execl("/bin/bash", "bash", "-c", ": < /dev/tcp/127.0.0.1/9", nullptr); }) == 128 + SIGSYS);
  CHECK(ending_of([] {
          ::execl("/bin/sh", "sh", "-c", "bash -c ': < /dev/tcp/127.0.0.1/9' && :; exit $(($? == 159 ? 42 : 1))",
                  nullptr);
        }) == 42);
}

TEST_CASE("verify, plan, apply, status and switch open no socket, nor does what they start") {
  const Site site;
  TinyBundle tiny{.arch = probe().target.arch, .imports = {"demo"}};
  tiny.items = {wheel_item({}), file_item("files/python", "#!/bin/sh\nexit 0\n", "bin/python3", true)};
  const MadeBundle made = site.make(tiny);
  const auto run_filtered = [&](std::vector<std::string> arguments) {
    const Outcome outcome = run(site.dir, std::move(arguments), nullptr, forbid_sockets);
    INFO(outcome.err);
    CHECK(outcome.exit == 0);
    return outcome.out;
  };
  run_filtered({"probe"});
  run_filtered(verify_arguments(made));
  std::vector<std::string> plan = apply_arguments(site, made);
  plan[0] = "plan";
  run_filtered(std::move(plan));
  CHECK(run_filtered(apply_arguments(site, made)).starts_with("installed tiny"));
  run_filtered({"status", "--prefix", site.prefix().folder()});
  run_filtered({"switch", "1", "--prefix", site.prefix().folder()});
  flip_bit(made.volume(0), 7);  // refusing opens none either
  CHECK(run(site.dir, verify_arguments(made), nullptr, forbid_sockets).exit == 5);
}

TEST_CASE("an interpreter that opens a socket in the self-test is killed by the filter, so the filter reaches it") {
  const Site site;
  TinyBundle tiny{.arch = probe().target.arch, .imports = {"demo"}};
  tiny.items = {wheel_item({}),
                file_item("files/python", "#!/bin/bash\n: < /dev/tcp/127.0.0.1/9\n", "bin/python3", true)};
  const Outcome outcome = run(site.dir, apply_arguments(site, site.make(tiny)), nullptr, forbid_sockets);
  CHECK(outcome.exit == 13);
  CHECK(outcome.err.find("signal 31") != std::string::npos);
}

TEST_CASE("where the system gives no further thread, the first one does everything") {
  const Site site;
  TinyBundle tiny{.arch = probe().target.arch, .chunk_size = 65536, .volume_size = 1 << 20};
  tiny.items = {wheel_item({}), file_item("files/a", numbers_text(1, 500'000), "share/a")};
  const MadeBundle made = site.make(tiny);
  for (const std::vector<std::string>& arguments : {verify_arguments(made), apply_arguments(site, made)}) {
    const Outcome outcome = run(site.dir, arguments, nullptr, forbid_threads);
    INFO(outcome.err);
    CHECK(outcome.exit == 0);
  }
  CHECK(read_file(site.current() / "share/a") == numbers_text(1, 500'000));
  flip_bit(made.volume(1), 7);
  CHECK(run(site.dir, verify_arguments(made), nullptr, forbid_threads).exit == 5);
}

TEST_CASE("a file that would grow beyond the account's limit is an error with its path, and the next run goes on") {
  const Site site;
  TinyBundle tiny{.arch = probe().target.arch};
  tiny.items = {wheel_item({}), file_item("files/a", numbers_text(1, 500'000), "share/a")};
  const MadeBundle made = site.make(tiny);
  const Outcome outcome = run(site.dir, apply_arguments(site, made), nullptr, [] {
    const rlimit limit = {1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  });
  INFO(outcome.err);
  CHECK(outcome.exit == 3);
  CHECK(outcome.err.find((site.prefix().folder() / "staging").string()) != std::string::npos);
  CHECK(outcome.err.find("ulimit -f") != std::string::npos);
  CHECK(!fs::exists(site.current()));
  CHECK(run(site.dir, apply_arguments(site, made)).exit == 0);
}

TEST_CASE("verify reads each byte of the medium once") {
  const Site site;
  TinyBundle tiny{.arch = probe().target.arch, .chunk_size = 65536, .volume_size = 1 << 20};
  tiny.items.push_back(file_item("files/a", numbers_text(1, 300'000), "share/a"));
  const MadeBundle made = site.make(tiny);
  const std::uint64_t size = made.manifest.payload.size + fs::file_size(made.seal()) + fs::file_size(made.chunks());
  const Outcome outcome = run(site.dir, verify_arguments(made));
  CHECK(outcome.exit == 0);
  if (outcome.bytes_read == 0) return left_out("needs a kernel that counts what a process reads");
  CHECK(outcome.bytes_read >= size);
  CHECK(outcome.bytes_read < size + 16384);  // what the C library reads of /sys to count processors
}

TEST_CASE("the largest chunks that a bundle may have, on twelve threads, stay within 256 MiB") {
  const Site site;
  const std::uint64_t chunk = kMaxChunkSize, count = 24;
  const Forged forged(site.dir / "b", "x", [&](Manifest& manifest) {
    const fs::path folder = site.dir / "b";
    fs::resize_file(folder / "forged-1.vol001", 0);
    fs::resize_file(folder / "forged-1.vol001", chunk * count);  // nothing but a hole
    manifest.payload.size = manifest.payload.volumes[0].size = chunk * count;
    manifest.payload.chunk_size = chunk;
    const Digest zeros = sha256(Bytes(chunk));
    std::string list;
    for (std::uint64_t i = 0; i < count; ++i) list += as_text(zeros.bytes);
    write_file(folder / "forged-1.chunks", list);
    manifest.payload.chunk_list_digest = sha256(as_bytes(list));
    manifest.entries.clear();
    manifest.environment.placements.clear();
  });
  std::vector<std::string> arguments = verify_arguments(forged.made);
  arguments.insert(arguments.end(), {"--threads", "12"});
  const Outcome outcome = run(site.dir, arguments);
  INFO(outcome.err);
  CHECK(outcome.exit == 0);
  CHECK((kSanitized || outcome.peak_memory < kMemory));
}

TEST_CASE("as much as recovery data may mend of a group, in the largest chunks, is mended within 256 MiB") {
  const Site site;
  const std::uint64_t chunk = kMaxChunkSize, count = 10, parity = kMendMemory / chunk;
  const Forged forged(site.dir / "b", "x", [&](Manifest& manifest) {
    const fs::path folder = site.dir / "b";
    const Digest zeros = sha256(Bytes(chunk));
    const auto list_of = [&](std::uint64_t of) {
      std::string list;
      for (std::uint64_t i = 0; i < of; ++i) list += as_text(zeros.bytes);
      return list;
    };
    const auto hole = [&](const std::string& name, std::uint64_t size) {
      write_file(folder / name, "");
      fs::resize_file(folder / name, size);
    };
    hole("forged-1.vol001", chunk * (count - parity));  // the rest of it is lost
    hole("forged-1.rec001", chunk * parity);            // zeros are the recovery data of zeros
    manifest.payload.size = manifest.payload.volumes[0].size = chunk * count;
    manifest.payload.chunk_size = chunk;
    write_file(folder / "forged-1.chunks", list_of(count));
    write_file(folder / "forged-1.recovery", list_of(parity));
    manifest.payload.chunk_list_digest = sha256(as_bytes(list_of(count)));
    manifest.payload.recovery = {.groups = 1,
                                 .parity = parity,
                                 .list_digest = sha256(as_bytes(list_of(parity))),
                                 .files = {{.name = "forged-1.rec001", .size = chunk * parity}}};
    manifest.installer_level = 5;
    manifest.entries.clear();
    manifest.environment.placements.clear();
  });
  const Outcome outcome = run(site.dir, {"mend", forged.made.folder, "--fingerprint", forged.made.fingerprint(),
                                         "--threads", "12", "--into", site.dir / "into"});
  INFO(outcome.err);
  CHECK(outcome.exit == 0);
  CHECK(fs::file_size(site.dir / "into" / "forged-1" / "forged-1.vol001") == chunk * count);
  MESSAGE("peak " << (outcome.peak_memory >> 20) << " MiB");
  CHECK((kSanitized || outcome.peak_memory < kMemory));
}

TEST_CASE("a bomb whose size was signed too small is stopped, in 256 MiB and without filling the disk") {
  const Site site;
  for (const auto& [claimed, window] : {std::pair<std::uint64_t, int>{1'000'000, 20},
                                        {std::uint64_t{10} << 30, 23},
                                        {std::uint64_t{10} << 30, 27},
                                        {std::uint64_t{10} << 30, 31}}) {
    CAPTURE(window);
    const fs::path folder = site.dir / ("w" + std::to_string(window));
    const Forged forged(folder, zeros_bomb(claimed, window), [](Manifest& manifest) {
      manifest.entries[0].encoding = Encoding::Zstd;
      manifest.entries[0].size = 1'000'000;
      manifest.entries[0].installed_size = 4 << 20;  // so that the frame's own bound is met first
      manifest.entries[0].sha256 = sha256({});
    });
    CHECK(run(site.dir, verify_arguments(forged.made)).exit == 0);  // the stored bytes are the signed ones
    const Outcome outcome = run(site.dir, apply_arguments(site, forged.made));
    INFO(outcome.err);
    CHECK(outcome.exit == 4);
    CHECK(outcome.err.find("compressed bytes are not acceptable") != std::string::npos);
    CHECK((kSanitized || outcome.peak_memory < kMemory));
    CHECK(!fs::exists(site.current()));
  }
}

TEST_CASE("sizes that would not fit into memory are refused before any is taken") {
  const Site site;
  const auto refused = [&](const std::string& name, int exit, const std::string& text,
                           const std::function<void(Manifest&)>& claim) {
    CAPTURE(name);
    const Forged forged(site.dir / name, std::string(10'000, 'x'), claim);
    for (std::vector<std::string> arguments : {verify_arguments(forged.made), apply_arguments(site, forged.made)}) {
      const Outcome outcome = run(site.dir, std::move(arguments));
      INFO(outcome.err);
      CHECK(outcome.exit == exit);
      CHECK(outcome.err.find(text) != std::string::npos);
      CHECK((kSanitized || outcome.peak_memory < kMemory / 4));
    }
  };
  refused("chunks", 4, "larger chunk_size",
          [](Manifest& manifest) { manifest.payload.size = manifest.payload.volumes[0].size = kMaxPayloadSize; });
  refused("list", 5, "the chunk list has the wrong length", [](Manifest& manifest) {
    manifest.payload.size = manifest.payload.volumes[0].size = (kMaxChunks - 1) * kDefaultChunkSize;
  });
  refused("volume", 5, "a volume is cut short", [](Manifest& manifest) {
    manifest.payload.size = manifest.payload.volumes[0].size = kDefaultChunkSize;
    manifest.entries[0].size = manifest.entries[0].stored_size = kDefaultChunkSize;  // one chunk, as in the list
  });
}

TEST_CASE("a seal of a tebibyte is refused before it is read") {
  const Site site;
  const MadeBundle made = site.make({.arch = probe().target.arch});
  fs::resize_file(made.seal(), std::uint64_t{1} << 40);
  const Outcome outcome = run(site.dir, verify_arguments(made));
  CHECK(outcome.exit == 4);
  CHECK(outcome.err.find("too large") != std::string::npos);
  CHECK((kSanitized || outcome.peak_memory < kMemory / 4));
}

TEST_CASE("the largest seal that may be, with a signature that does not hold, stays within 256 MiB") {
  const Site site;
  const MadeBundle made = site.make({.arch = probe().target.arch});
  Seal seal = parse_seal(read_text(made.seal(), kMaxSealSize), "seal");
  seal.manifest.payload = std::string((kMaxSealSize - 8192) / 4 * 3, '[');
  write_file(made.seal(), write_seal(seal));
  const Outcome outcome = run(site.dir, verify_arguments(made));
  INFO(outcome.err);
  CHECK(outcome.exit == 6);
  CHECK((kSanitized || outcome.peak_memory < kMemory));
}
