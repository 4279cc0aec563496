// SPDX-License-Identifier: Apache-2.0
// Rehearsals with the real sealift-install: what it sees, what it says when it fails, and that nothing stays behind.
// Where a process cannot be without a network only the refusal is tested, and that is said.
#include "packager/pack/rehearse.hpp"

#include "packager/pack/delta_bases.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <csignal>

#include "bundle/host/scratch_folder.hpp"
#include "packager/delta/delta.hpp"
#include "packager/host/process.hpp"
#include "sealift/bundle/host/child_process.hpp"
#include "sealift/bundle/host/interrupt.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"
#include "tests/support/tiny_wheel.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

// A bundle with the real installer beside it; `interpreter` is the script that the self-test starts.
struct Finished {
  TempDir dir;
  bundle::PrivateKey key = bundle::PrivateKey::generate();
  bundle::Progress progress{nullptr};
  MadeBundle made;

  explicit Finished(const std::string& interpreter) {
    utsname machine{};
    ::uname(&machine);
    TinyBundle tiny{.arch = machine.machine, .imports = {"demo"}};
    const std::string wheel = make_wheel({});
    tiny.items = {{.path = "wheels/demo-1.0-py3-none-any.whl", .kind = bundle::EntryKind::Wheel, .bytes = wheel},
                  {.path = "files/python", .bytes = interpreter, .into = "bin/python3", .executable = true}};
    fs::create_directory(dir / "desk");
    made = make_bundle(dir / "desk/tiny-1", tiny, key);
    fs::copy_file(SEALIFT_INSTALL, made.folder / "sealift-install");
    const std::string bytes = read_file(SEALIFT_INSTALL);
    made.manifest.companions = {
        {.name = "sealift-install", .size = bytes.size(), .sha256 = bundle::sha256(bundle::as_bytes(bytes))}};
    reseal(made, {one_key_root(key)}, {&key});
  }
  RehearseOptions options(const fs::path& system = {}) const {
    return {
        .bundle = made.folder, .fingerprint = *made.trusted.state.pinned, .system = system, .work_area = dir / "desk"};
  }
  // std::nullopt where this machine has no sandbox to offer.
  std::optional<Rehearsal> rehearsed(const fs::path& system = {}) {
    try {
      return rehearse(options(system), progress);
    } catch (const bundle::Error& error) {
      if (error.code() != bundle::ErrorCode::CannotCheck) throw;
      sealift::test::left_out(error.what());
      return std::nullopt;
    }
  }
  std::size_t beside() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir / "desk"), fs::directory_iterator()));
  }
};

// Somebody who listens on the loopback of this machine.
struct Listener {
  bundle::Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};

  Listener() {
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(socket.get(), 4) == 0);
    REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  }
  // Fails exactly if the listener can be reached.
  std::string script() const {
    return "#!/bin/bash\nif (: < /dev/tcp/127.0.0.1/" + std::to_string(ntohs(address.sin_port)) +
           ") 2>/dev/null; then exit 9; fi\nexit 0\n";
  }
};

}  // namespace

TEST_CASE("a rehearsal installs the bundle, reaches no network, and leaves nothing behind") {
  const Listener listener;
  Finished finished(listener.script());
  write_file(finished.dir / "script", listener.script());
  CHECK(run_process({"bash", finished.dir / "script"}).exit_code == 9);  // from here it is reached
  const std::optional<Rehearsal> done = finished.rehearsed();
  CHECK(finished.beside() == 1);
  if (!done) return;
  CHECK(done->installed.starts_with("installed tiny"));
  CHECK(done->system.starts_with("this machine's own system"));
}

TEST_CASE("what a rehearsal runs sees no key, variable or file of its packer's, and writes none") {
  const TempDir home;
  write_file(home / "release.key", "secret");
  const std::string key = (home / "release.key").string();
  Finished finished("#!/bin/sh\n[ -e " + key + " ] && exit 9\n[ -e /root ] && exit 9\n[ -e /etc/shadow ] && exit 9\n" +
                    "env | grep -q secret && exit 9\necho changed > " + key + "\nexit 0\n");
  ::setenv("SEALIFT_PASSPHRASE", "secret", 1);
  const Rehearsal done = rehearse(finished.options(), finished.progress);
  ::unsetenv("SEALIFT_PASSPHRASE");
  CHECK(done.installed.starts_with("installed tiny"));
  CHECK(read_file(key) == "secret");
}

TEST_CASE("without a sandbox no rehearsal starts anything: bwrap is missing, fails, or leaves a network") {
  const TempDir dir;
  const Finished finished("#!/bin/sh\ntouch " + (dir / "was-run").string() + "\nexit 0\n");
  const auto said_with = [&](const std::string& bwrap) {
    fs::create_directories(dir / "bin");
    if (!bwrap.empty()) write_file(dir / "bin/bwrap", "#!/bin/sh\n" + bwrap);
    if (!bwrap.empty()) fs::permissions(dir / "bin/bwrap", fs::perms(0755));
    const ProcessResult result =
        run_in({SEALIFT_PACK, "rehearse", finished.made.folder, "--fingerprint", finished.made.fingerprint()},
               {{"PATH", (dir / "bin").string()}});
    CHECK(result.exit_code == 11);
    CHECK_FALSE(fs::exists(dir / "was-run"));
    CHECK(finished.beside() == 1);
    return result.err;
  };
  CHECK(said_with("").find("no bwrap in PATH") != std::string::npos);
  CHECK(said_with("echo no namespaces here >&2\nexit 1\n").find("no namespaces here") != std::string::npos);
  // One that holds nothing, on a machine with a network.
  const std::string said = said_with(
      "while [ \"$1\" != -- ]; do shift; done\nshift\ncase $1 in\n"
      "cat) printf '    lo: 0\\n  eth0: 0\\n' ;;\n*) exec \"$@\" ;;\nesac\n");
  CHECK_MESSAGE(said.find("network devices: lo, eth0") != std::string::npos, said);
}

TEST_CASE("a bundle that does not pass its self-test fails the rehearsal with the installer's code and words") {
  Finished finished("#!/bin/sh\necho no such module >&2\nexit 3\n");
  if (!Finished("#!/bin/sh\nexit 0\n").rehearsed()) return;
  const bundle::Error error = refusal([&] { rehearse(finished.options(), finished.progress); });
  CHECK(error.code() == bundle::ErrorCode::SelfTest);
  CHECK(mentions(error, "no such module"));
  CHECK(mentions(error, "do not hand it out"));
  CHECK(finished.beside() == 1);
}

TEST_CASE("a new bundle that fails its rehearsal loses its name, one that was not tried keeps it") {
  Finished finished("#!/bin/sh\nexit 3\n");
  const fs::path folder = finished.made.folder, aside = folder.string() + ".failed";
  const auto rehearsed = [&](const std::vector<fs::path>& onto = {}) {
    return rehearse_new(folder, {}, {}, onto, {}, finished.progress);
  };
  if (!Finished("#!/bin/sh\nexit 0\n").rehearsed()) return;
  rehearse_new(folder, {{.role = "release", .signatures = 0, .threshold = 1}}, {}, {}, {}, finished.progress);
  CHECK(fs::exists(folder));
  CHECK_REFUSED(rehearsed({finished.dir / "none"}), Missing, "none");  // not this bundle's fault
  CHECK(fs::exists(folder));
  CHECK_REFUSED(rehearsed(), SelfTest, "tiny-1.failed");
  CHECK_FALSE(fs::exists(folder));
  CHECK(fs::exists(aside / "sealift-install"));
  fs::copy(aside, folder, fs::copy_options::recursive);
  CHECK_REFUSED(rehearsed(), SelfTest, "tiny-1.failed.2");
}

TEST_CASE("a full disk, a refusal of the system or a killed installer say nothing of a bundle, which keeps its name") {
  Finished finished("#!/bin/sh\nexit 0\n");
  if (!finished.rehearsed()) return;
  const auto with_installer = [&](const std::string& script) {
    fs::remove(finished.made.folder / "sealift-install");
    write_file(finished.made.folder / "sealift-install", script);
    fs::permissions(finished.made.folder / "sealift-install", fs::perms(0755));
    finished.made.manifest.companions = {
        {.name = "sealift-install", .size = script.size(), .sha256 = bundle::sha256(bundle::as_bytes(script))}};
    reseal(finished.made, {one_key_root(finished.key)}, {&finished.key});
    return rehearse_new(finished.made.folder, {}, {}, {}, {}, finished.progress);
  };
  for (const char* end : {"exit 9", "exit 3", "kill -KILL $$"}) {
    const NewRehearsal later = with_installer(std::string("#!/bin/sh\necho no room >&2\n") + end + "\n");
    INFO(end, " ", later.why_not);
    CHECK_FALSE(later.done);
    CHECK(later.why_not.find("says nothing of the bundle") != std::string::npos);
    CHECK(later.why_not.find("no room") != std::string::npos);
    CHECK(fs::exists(finished.made.folder));
    CHECK(finished.beside() == 1);
  }
  CHECK_REFUSED(with_installer("#!/bin/sh\nexit 5\n"), Digest, "tiny-1.failed");
}

TEST_CASE("what a killed rehearsal has left goes with the next one, and only that") {
  Finished finished("#!/bin/sh\nexit 0\n");
  const fs::path beside = finished.dir / "desk";
  write_file(beside / ".rehearsal-abcdef/prefix/lock", "");
  write_file(beside / ".rehearsals/mine", "");
  const bundle::ScratchFolder at_work(".rehearsal", beside);
  if (!finished.rehearsed()) return;
  CHECK_FALSE(fs::exists(beside / ".rehearsal-abcdef"));
  CHECK(fs::exists(beside / ".rehearsals/mine"));
  CHECK(fs::exists(at_work.path()));
}

TEST_CASE("a rehearsal that is stopped after create says that the bundle is whole") {
  const Finished finished("#!/bin/sh\nexit 0\n");
  const pid_t child = ::fork();
  if (child == 0) {
    bundle::catch_interrupts();
    try {
      ::raise(SIGTERM);
      bundle::Progress silent(nullptr);
      rehearse_new(finished.made.folder, {}, {}, {}, {}, silent);
    } catch (const bundle::Interrupted& stopped) {
      write_file(finished.dir / "said", stopped.next);
    } catch (...) {
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(read_file(finished.dir / "said").find("the bundle is whole, and not rehearsed") != std::string::npos);
  CHECK(fs::exists(finished.made.folder));
  CHECK(finished.beside() == 1);
}

TEST_CASE("waivers are the installer's to judge; one that it refuses is no fault of the bundle, which keeps its name") {
  Finished finished("#!/bin/sh\nexit 0\n");
  RehearseOptions options = finished.options();
  options.waivers = {"lib/none.so"};
  CHECK_REFUSED(rehearse(options, finished.progress), Usage, "a waiver has no reason");
  if (!finished.rehearsed()) return;
  options.waivers = {"lib/none.so=nobody needs it"};
  CHECK_REFUSED(rehearse(options, finished.progress), Usage, "names no native file");
  CHECK_REFUSED(rehearse_new(finished.made.folder, {}, {}, {}, options.waivers, finished.progress), Usage,
                "the bundle is not rehearsed");
  CHECK(fs::exists(finished.made.folder));
}

TEST_CASE("a bundle for another architecture is not rehearsed here, which is no fault of it") {
  Finished finished("#!/bin/sh\n");
  finished.made.manifest.target.arch = "aarch64";
  reseal(finished.made, {one_key_root(finished.key)}, {&finished.key});
  CHECK_REFUSED(rehearse(finished.options(), finished.progress), CannotCheck, "a machine of aarch64");
  const NewRehearsal later = rehearse_new(finished.made.folder, {}, {}, {}, {}, finished.progress);
  CHECK(later.why_not.find("another architecture") != std::string::npos);
  CHECK(fs::exists(finished.made.folder));  // it keeps its name
}

TEST_CASE("only the installer that was signed is started") {
  Finished finished("#!/bin/sh\nexit 0\n");
  const fs::path installer = finished.made.folder / "sealift-install";
  write_file(installer, "#!/bin/sh\ntouch \"$0.was-started\"\n");
  CHECK_REFUSED(rehearse(finished.options(), finished.progress), Digest, "sealift-install");
  CHECK(!fs::exists(installer.string() + ".was-started"));
  fs::remove(installer);
  CHECK_REFUSED(rehearse(finished.options(), finished.progress), Missing, "not beside the bundle");
  RehearseOptions other = finished.options();
  other.fingerprint = bundle::sha256({});
  CHECK_REFUSED(rehearse(other, finished.progress), Signature, "root");
}

namespace {

// Makes a delta of what is finished, beside it, which is finished instead; returns the folder of the first.
fs::path make_delta_of(Finished& finished) {
  const bundle::Manifest whole = finished.made.manifest;
  TinyBundle tiny{.version = 2, .arch = whole.target.arch, .imports = {"demo"}};
  tiny.items = {
      {.path = "wheels/demo-1.0-py3-none-any.whl",
       .kind = bundle::EntryKind::Wheel,
       .bytes = make_wheel({}),
       .absent = true},
      {.path = "files/python", .bytes = "#!/bin/sh\nexit 0\n# new\n", .into = "bin/python3", .executable = true}};
  const fs::path before = finished.made.folder;
  finished.made = make_bundle(finished.dir / "desk/tiny-2", tiny, finished.key);
  finished.made.manifest.companions = whole.companions;
  fs::copy_file(SEALIFT_INSTALL, finished.made.folder / "sealift-install");
  reseal(finished.made, {one_key_root(finished.key)}, {&finished.key});
  return before;
}

}  // namespace

TEST_CASE("who rehearses a delta alone is told which bundle to give as its base, where that lies beside it") {
  Finished finished("#!/bin/sh\nexit 0\n");
  const fs::path before = make_delta_of(finished);
  CHECK(before.parent_path() == finished.made.folder.parent_path());
  CHECK_REFUSED(rehearse(finished.options(), finished.progress), CannotCheck, " --onto " + before.string());
  CHECK(delta_bases(finished.made.manifest, before.parent_path(), finished.options().fingerprint) ==
        std::vector<fs::path>{before});
  CHECK(delta_bases(finished.made.manifest, before.parent_path(), bundle::sha256({})).empty());
  const fs::path away = finished.dir / "away";
  fs::rename(before, away);
  CHECK_REFUSED(rehearse(finished.options(), finished.progress), CannotCheck, "oldest first: --onto BUNDLE");
}

TEST_CASE("a delta is rehearsed onto the bundle that it builds on") {
  Finished finished("#!/bin/sh\nexit 0\n");
  const fs::path before = make_delta_of(finished);
  RehearseOptions options = finished.options();
  options.onto = {before};
  try {
    CHECK(rehearse(options, finished.progress).installed.starts_with("installed tiny version 2 as generation 2"));
  } catch (const bundle::Error& error) {
    if (error.code() != bundle::ErrorCode::CannotCheck) throw;
    sealift::test::left_out(error.what());
  }
  CHECK(finished.beside() == 2);
}

TEST_CASE("another system is entered, and only what it has is there") {
  Finished finished("#!/bin/sh\n[ -e /only-here ] && [ ! -e /etc/passwd ]\n");
  const fs::path system = finished.dir / "system";
  for (const char* folder : {"mnt", "dev", "bin", "lib64", "lib/x86_64-linux-gnu"})
    fs::create_directories(system / folder);
  write_file(system / "only-here", "");
  for (const char* file : {"/bin/sh", "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"}) {
    if (!fs::exists(file)) return left_out("needs ", file);
    fs::copy_file(file, system.string() + file);
  }
  const std::optional<Rehearsal> done = finished.rehearsed(system);
  CHECK(fs::is_empty(system / "mnt"));
  if (done) CHECK(done->system == system.string());
}

TEST_CASE(
    "the inventory that is derived from a bundle is the one that the real installer prints where it is installed") {
  Finished finished("#!/bin/sh\nexit 0\n");
  // An entry without a place is not installed.
  TinyBundle tiny{.arch = finished.made.manifest.target.arch, .volume_size = 8192};
  tiny.items = {{.path = "wheels/demo-1.0-py3-none-any.whl", .kind = bundle::EntryKind::Wheel, .bytes = make_wheel({})},
                {.path = "files/notes", .bytes = "notes\n", .into = "share/notes", .encoding = bundle::Encoding::Zstd},
                {.path = "files/run", .bytes = "#!/bin/sh\n", .into = "bin/run", .executable = true},
                {.path = "trees/t.tar",
                 .kind = bundle::EntryKind::Tree,
                 .bytes = make_tar({{tar_file("share/a"), "a\n"}}, true),
                 .encoding = bundle::Encoding::Zstd},
                {.path = "files/unplaced", .bytes = "nobody's\n", .into = "share/unplaced"}};
  MadeBundle made = make_bundle(finished.dir / "desk/tiny-2", tiny, finished.key);
  std::erase_if(made.manifest.environment.placements,
                [](const auto& placement) { return placement.entry.text() == "files/unplaced"; });
  reseal(made, {one_key_root(finished.key)}, {&finished.key});

  const std::string prefix = finished.dir / "prefix";
  const auto installer = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), SEALIFT_INSTALL);
    arguments.insert(arguments.end(), {"--prefix", prefix});
    return bundle::run_child({.arguments = arguments, .environment = {"PATH=/usr/bin:/bin"}, .keep_output = 100000});
  };
  const bundle::ChildEnd applied = installer({"apply", made.folder, "--fingerprint", made.fingerprint()});
  INFO(applied.errors);
  REQUIRE(applied.good());
  const bundle::Inventory derived = inventory_of_bundle(made.folder, *made.trusted.state.pinned);
  CHECK(derived.items.size() == 4);
  CHECK(bundle::write_inventory(derived) == installer({"inventory"}).output);
}
