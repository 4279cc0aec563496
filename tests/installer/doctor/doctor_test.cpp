// SPDX-License-Identifier: Apache-2.0
// One damage after another to an installed prefix: each is found, named by every name it has, and put right from the
// bundle, so that the prefix ends as it was.
#include "installer/doctor/doctor.hpp"

#include "installer/doctor/expected_tree.hpp"
#include "installer/doctor/machine_notes.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/trust_store.hpp"
#include "sealift/bundle/native/system_libraries.hpp"
#include "tests/installer/host_python.hpp"
#include "tests/installer/stopping_disk.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using Kind = Deviation::Kind;

namespace {

const std::string kModule = "lib/python3.11/site-packages/demo/__init__.py";

TinyBundle environment(std::uint64_t version = 1) {
  TinyBundle tiny{.version = version};
  tiny.items = {wheel_item({.entry_points = "[console_scripts]\ndemo-run = demo:main\n"}),
                tree_item("trees/data.tar", {{tar_folder("lib"), ""},
                                             {tar_folder("lib/empty"), ""},
                                             {tar_file("bin/tool", true), "#!/bin/sh\necho tool\n"},
                                             {tar_file("lib/data.txt"), "data\n"},
                                             {tar_file("lib/deep/more.txt"), "more\n"},
                                             {tar_link("bin/alias", "tool"), ""}}),
                file_item("files/notes", "notes of " + std::to_string(version) + "\n", "share/notes.txt")};
  return tiny;
}

// Two generations that share all but one file.
struct Installed : Site {
  MadeBundle first = make(environment(1), "bundle1");
  MadeBundle second = make(environment(2), "bundle2");

  Installed() {
    apply(first);
    apply(second);
  }
  fs::path root() const { return prefix().folder(); }
  fs::path in_generation(unsigned number, const std::string& path) const { return prefix().generation(number) / path; }
  // The one item that holds `path`.
  fs::path in_store(const std::string& path) const {
    for (const std::string& name : item_names(prefix()))
      if (fs::exists(fs::symlink_status(prefix().store() / name / path))) return prefix().store() / name / path;
    throw std::runtime_error("no item has " + path);
  }
  Checkup check() const { return call({}); }
  Checkup repair() const { return call(second.folder); }
  Checkup call(const fs::path& bundle) const {
    Disk disk;
    return call(bundle, disk);
  }
  Checkup call(const fs::path& bundle, Disk& disk) const {
    bundle::Progress silent(nullptr);
    return doctor({.prefix = prefix(), .repair = bundle, .now = kNow, .threads = threads}, disk, silent);
  }
};

void overwrite(const fs::path& path, const std::string& text) {  // the file, not the name
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::remove);
}

void replace(const fs::path& path, const std::string& text, fs::perms mode = fs::perms(0444)) {  // the name
  fs::remove_all(path);
  write_file(path, text);
  fs::permissions(path, mode);
}

// What is there, without inodes and times: equal for an undisturbed prefix and a repaired one.
std::map<std::string, std::string> contents(const fs::path& root, bool with_links = true) {
  std::map<std::string, std::string> found;
  for (const char* part : {"store", "generations"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / part)) {
      const struct stat status = status_of_path(entry.path());
      found[entry.path().lexically_relative(root).string()] =
          std::to_string(status.st_mode) + " " +
          std::to_string(S_ISDIR(status.st_mode) || !with_links ? 0 : status.st_nlink) + " " +
          (S_ISREG(status.st_mode)   ? read_file(entry.path())
           : S_ISLNK(status.st_mode) ? fs::read_symlink(entry.path()).string()
                                     : "");
    }
  return found;
}

// As `cp -r` does it.
void copy_without_links(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

const Deviation* finding_of(const Checkup& checkup, const std::string& path) {
  for (const Deviation& finding : checkup.findings)
    if (finding.paths.front().find(path) != std::string::npos) return &finding;
  return nullptr;
}

struct Damage {
  const char* name;
  std::function<void(const Installed&)> doing;
  Kind kind;
  std::string path;   // a part of the first name
  std::size_t names;  // that the finding must list
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> list = {
      {"other bytes of the same length in a shared file",
       [](const Installed& site) { overwrite(site.in_generation(2, kModule), "ANSWER = 43\n"); }, Kind::Changed,
       "store/", 3},
      {"a shared file cut short", [](const Installed& site) { overwrite(site.in_store("tree/lib/data.txt"), "da"); },
       Kind::Changed, "store/", 3},
      {"a file of one generation replaced",
       [](const Installed& site) { replace(site.in_generation(1, kModule), "ANSWER = 43\n"); }, Kind::Changed,
       "generations/0001/" + kModule, 1},
      {"a file of one generation gone", [](const Installed& site) { fs::remove(site.in_generation(1, kModule)); },
       Kind::Missing, "generations/0001/" + kModule, 1},
      {"a file of the store gone", [](const Installed& site) { fs::remove(site.in_store("tree/lib/data.txt")); },
       Kind::Missing, "tree/lib/data.txt", 1},
      {"an extra file", [](const Installed& site) { write_file(site.in_generation(2, "bin/extra"), "x"); }, Kind::Extra,
       "generations/0002/bin/extra", 1},
      {"an extra folder",
       [](const Installed& site) { write_file(site.in_store("site-packages/demo") / "__pycache__/a.pyc", "x"); },
       Kind::Extra, "demo/__pycache__", 1},
      {"an extra link", [](const Installed& site) { fs::create_symlink("/etc", site.in_generation(1, "lib/more")); },
       Kind::Extra, "generations/0001/lib/more", 1},
      {"a writable file",
       [](const Installed& site) { fs::permissions(site.in_generation(1, "bin/tool"), fs::perms(0755)); }, Kind::Mode,
       "store/", 3},
      {"a program that is none any more",
       [](const Installed& site) { fs::permissions(site.in_generation(1, "bin/tool"), fs::perms(0444)); }, Kind::Mode,
       "store/", 3},
      {"a link to something else",
       [](const Installed& site) {
         fs::remove(site.in_generation(1, "bin/alias"));
         fs::create_symlink("nothing", site.in_generation(1, "bin/alias"));
       },
       Kind::Changed, "generations/0001/bin/alias", 1},
      {"a link in place of a folder",
       [](const Installed& site) {
         fs::remove_all(site.in_generation(1, "lib/deep"));
         fs::create_symlink("/etc", site.in_generation(1, "lib/deep"));
       },
       Kind::Changed, "generations/0001/lib/deep", 1},
      {"a folder in place of a file",
       [](const Installed& site) {
         fs::remove(site.in_generation(1, "share/notes.txt"));
         write_file(site.in_generation(1, "share/notes.txt/inside"), "x");
       },
       Kind::Changed, "generations/0001/share/notes.txt", 1},
      {"a folder gone with all that it held",
       [](const Installed& site) { fs::remove_all(site.in_store("tree/lib/deep")); }, Kind::Missing, "tree/lib/deep",
       1},
      {"a good file in another's place",
       [](const Installed& site) {
         fs::remove(site.in_generation(1, "lib/data.txt"));
         fs::create_hard_link(site.in_generation(1, "lib/deep/more.txt"), site.in_generation(1, "lib/data.txt"));
       },
       Kind::Changed, "generations/0001/lib/data.txt", 1},
      {"a RECORD with another digest",
       [](const Installed& site) {
         const fs::path record = site.in_generation(2, "lib/python3.11/site-packages/demo-1.0.dist-info/RECORD");
         std::string text = read_file(record);
         text[text.find("sha256=") + 10] ^= 1;
         overwrite(record, text);
       },
       Kind::Changed, "demo-1.0.dist-info/RECORD", 1},
      {"an item without its record",
       [](const Installed& site) { fs::remove(site.in_store("tree").parent_path() / "record.json"); }, Kind::Missing,
       "-tree/record.json", 1},
      {"an item whose record is damaged",
       [](const Installed& site) { overwrite(site.in_store("tree").parent_path() / "record.json", "{"); },
       Kind::Changed, "-tree/record.json", 1},
      {"an item with another one's record",
       [](const Installed& site) {
         overwrite(site.in_store("tree").parent_path() / "record.json",
                   read_file(site.in_store("site-packages").parent_path() / "record.json"));
       },
       Kind::Changed, "-tree/record.json", 1},
  };
  return list;
}

}  // namespace

TEST_CASE("an undisturbed prefix is healthy: every file looked at, each hashed once, nothing written") {
  const Installed site;
  const auto before = snapshot(site.root());
  const Checkup checkup = site.check();
  CHECK(checkup.findings.empty());
  CHECK(!verdict(checkup));
  CHECK(checkup.generations == 2);
  CHECK(checkup.items == 4);
  std::map<ino_t, std::uint64_t> sizes;
  for (const char* part : {"store", "generations"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(site.root() / part))
      if (entry.is_regular_file() && !entry.is_symlink() && entry.path().extension() != ".json")
        sizes[status_of_path(entry.path()).st_ino] = entry.file_size();
  std::uint64_t sum = 0;
  for (const auto& [inode, size] : sizes) sum += size;
  CHECK(checkup.bytes == sum);
  CHECK(snapshot(site.root()) == before);
  CHECK(site.repair().findings.empty());
  CHECK(!fs::exists(site.prefix().staging()));
}

TEST_CASE("each damage is found under all of its names, and repaired from the bundle to what was there") {
  for (const Damage& damage : damages()) {
    CAPTURE(damage.name);
    const Installed site;
    const auto before = contents(site.root());
    damage.doing(site);
    const Checkup found = site.check();
    const Deviation* finding = finding_of(found, damage.path);
    REQUIRE(finding != nullptr);
    CHECK(name_of(finding->kind) == name_of(damage.kind));
    CHECK(finding->paths.size() == damage.names);
    CHECK(verdict(found) == (damage.kind == Kind::Missing ? bundle::ErrorCode::Missing : bundle::ErrorCode::Digest));
    const Checkup repaired = site.repair();
    for (const Deviation& left : repaired.findings) MESSAGE(left.paths.front() << ": " << left.got);
    CHECK(!verdict(repaired));
    CHECK(finding_of({.findings = repaired.repaired}, damage.path) != nullptr);
    CHECK(contents(site.root()) == before);
    CHECK(site.check().findings.empty());
    CHECK(!fs::exists(site.prefix().staging()));
  }
}

TEST_CASE("an item that is gone is rebuilt, and the generations are then looked at again") {
  const Installed site;
  fs::remove_all(site.in_store("tree").parent_path());
  fs::remove(site.in_generation(1, "lib/data.txt"));
  const Checkup found = site.check();
  REQUIRE(finding_of(found, "-tree") != nullptr);
  CHECK(verdict(found) == bundle::ErrorCode::Missing);
  const Checkup repaired = site.repair();
  CHECK(repaired.findings.empty());
  CHECK(read_file(site.in_generation(1, "lib/data.txt")) == "data\n");
}

TEST_CASE("a file that was changed in every place that tells of it is found with the bundle") {
  const Installed site;
  const auto before = contents(site.root());
  const std::string good = "ANSWER = 42\n", bad = "ANSWER = 43\n";
  const auto digest = [](const std::string& text) { return bundle::sha256(bundle::as_bytes(text)); };
  const auto base64 = [&](const std::string& text) {
    return bundle::to_base64(digest(text).bytes, bundle::Base64::UrlNoPad);
  };
  const auto swap = [](const fs::path& file, const std::string& from, const std::string& to) {
    std::string text = read_file(file);
    REQUIRE(text.find(from) != std::string::npos);
    overwrite(file, text.replace(text.find(from), from.size(), to));
  };
  overwrite(site.in_generation(1, kModule), bad);
  swap(site.in_store("site-packages").parent_path() / "record.json", digest(good).hex(), digest(bad).hex());
  for (const unsigned number : {1u, 2u})
    swap(site.in_generation(number, "lib/python3.11/site-packages/demo-1.0.dist-info/RECORD"), base64(good),
         base64(bad));
  CHECK(site.check().findings.empty());  // nothing on this disk contradicts it
  const Checkup repaired = site.repair();
  CHECK(repaired.findings.empty());
  CHECK(repaired.signed_items == 3);
  CHECK(contents(site.root()) == before);
}

TEST_CASE("what another bundle brought is not repaired from this one, and stays a finding") {
  const Installed site;
  overwrite(site.in_generation(1, "share/notes.txt"), "nates of 1\n");
  overwrite(site.in_generation(1, "lib/data.txt"), "date\n");
  const Checkup half = site.repair();
  REQUIRE(half.findings.size() == 1);
  CHECK(half.findings[0].paths.size() == 2);
  CHECK(half.findings[0].paths[1] == "generations/0001/share/notes.txt");
  CHECK(half.repaired.size() == 1);
  CHECK(verdict(half) == bundle::ErrorCode::Digest);
  CHECK(site.call(site.first.folder).findings.empty());  // older than what was accepted, yet it is what is installed
}

TEST_CASE("a repair needs a bundle that this site trusts, whole, and the lock") {
  const Installed site;
  overwrite(site.in_generation(1, kModule), "ANSWER = 43\n");
  const auto before = contents(site.root());
  CHECK_REFUSED(site.call(make_bundle(site.dir / "stranger", environment()).folder), Signature, "");
  flip_bit(site.second.volume(0), 8 * (site.second.manifest.entries.front().offset + 3));
  CHECK_REFUSED(site.repair(), Digest, "vol001");
  Disk disk;
  {
    const PrefixLock lock(site.prefix(), disk, "apply");
    CHECK_REFUSED(site.call(site.first.folder), Conflict, "sealift-install apply");
    CHECK(site.check().findings.size() == 1);  // looking needs no lock
  }
  CHECK(contents(site.root()) == before);
  CHECK_REFUSED(doctor({.prefix = Prefix(site.dir / "none")}, disk, *std::make_unique<bundle::Progress>(nullptr)),
                Missing, "no prefix");
}

TEST_CASE("after a revocation a repair says which copy it needs: of which bundle, signed by which key, put where") {
  const Installed site;
  overwrite(site.in_generation(1, kModule), "ANSWER = 43\n");
  const bundle::PrivateKey fresh = bundle::PrivateKey::generate();
  const auto accept = [&](const bundle::Root& before, const std::function<void(bundle::Root&)>& change,
                          const bundle::PrivateKey& old_key) {
    const bundle::Root next = next_root(before, change);
    write_file(site.dir / "next.json", write_envelope(signed_root(next, {&old_key, &fresh})));
    Disk disk;
    update_root(site.prefix(), disk, {site.dir / "next.json"});
    return next;
  };
  const bundle::Root second = accept(
      bundle::parse_root(one_key_root(site.key).payload, "root 1"),
      [&](bundle::Root& root) {
        const bundle::Root other = make_root({&fresh}, {&fresh});
        root.keys = other.keys, root.roles = other.roles;
        root.revoked_keys[site.key.public_key().id()] = {.date = "2026-02-01T00:00:00Z", .reason = "stolen"};
      },
      site.key);
  const std::string identity =
      bundle::fingerprint_text(sealift::bundle::open(site.second.folder).seal.manifest.digest());
  const std::string key = bundle::fingerprint_text(fresh.public_key().id());
  CHECK_REFUSED(site.repair(), Revoked,
                "of the same bundle, " + identity + ", signed anew by 1 of the release keys " + key);
  CHECK_REFUSED(site.repair(), Revoked, "put it in the place of " + site.second.seal().string());
  reseal(site.second, {one_key_root(site.key), bundle::parse_roots(read_file(site.dir / "next.json"), "next").front()},
         {&fresh});
  CHECK(site.repair().repaired.size() == 1);  // what it says does it
  accept(
      second,
      [&](bundle::Root& root) {
        root.revoked_bundles[sealift::bundle::open(site.second.folder).seal.manifest.digest()] = {
            .date = "2026-03-01T00:00:00Z", .reason = "a wrong model"};
      },
      fresh);
  CHECK_REFUSED(site.repair(), Revoked,
                "no copy of " + site.second.manifest.stem() + ", " + identity + ", is accepted any more");
}

TEST_CASE("where a strict root has expired, a repair asks for the next root and for no signature") {
  const Installed site;
  overwrite(site.in_generation(1, kModule), "ANSWER = 43\n");
  const bundle::Root next =
      next_root(bundle::parse_root(one_key_root(site.key).payload, "root 1"), [](bundle::Root& root) {
        root.strict = true;
        root.expires = "2026-05-01T00:00:00Z";
      });
  write_file(site.dir / "next.json", write_envelope(signed_root(next, {&site.key})));
  Disk disk;
  update_root(site.prefix(), disk, {site.dir / "next.json"});
  CHECK_REFUSED(site.repair(), Revoked, "sealift-install trust update ROOT");
}

TEST_CASE("stopped at any change, a repair leaves less to repair, and the next one ends it") {
  int stops = 0;
  for (int k = 0; k < 400; ++k) {
    const Installed site;
    const auto before = contents(site.root(), false);  // a stop may leave a file twice, both right
    overwrite(site.in_generation(2, kModule), "ANSWER = 43\n");
    fs::remove_all(site.in_store("tree/lib/deep"));
    fs::remove(site.in_generation(1, "bin/alias"));
    const std::size_t wrong = site.check().findings.size();
    StoppingDisk disk(k);
    bool stopped = false;
    try {
      site.call(site.second.folder, disk);
    } catch (const StoppingDisk::Stop&) {
      stopped = true;
      ++stops;
    }
    if (stopped) CHECK(site.check().findings.size() <= wrong + 2);  // a folder can be there before its files
    CHECK(site.repair().findings.empty());
    CHECK(contents(site.root(), false) == before);
    CHECK(!fs::exists(site.prefix().staging()));
    if (!stopped) break;
  }
  CHECK(stops > 20);
  CHECK(stops < 400);
}

TEST_CASE("without hard links, copies are hashed one by one and put right one by one") {
  Site site;
  LinklessDisk disk;
  const MadeBundle made = site.make(environment());
  site.apply(made, disk);
  bundle::Progress silent(nullptr);
  const auto before = contents(site.prefix().folder());
  overwrite(site.prefix().generation(1) / kModule, "ANSWER = 43\n");
  const Checkup found = doctor({.prefix = site.prefix(), .repair = {}, .now = kNow}, disk, silent);
  REQUIRE(found.findings.size() == 1);
  CHECK(found.findings[0].paths == std::vector<std::string>{"generations/0001/" + kModule});
  CHECK(doctor({.prefix = site.prefix(), .repair = made.folder, .now = kNow}, disk, silent).findings.empty());
  CHECK(contents(site.prefix().folder()) == before);
}

TEST_CASE("a prefix that was copied without its hard links is told, and becomes as small as it was") {
  const Installed site;
  const auto before = contents(site.root());
  const fs::path copy = site.dir / "copy";
  copy_without_links(site.root(), copy);
  Disk disk;
  bundle::Progress silent(nullptr);
  const auto look = [&](bool relink, Disk& on) {
    return doctor({.prefix = Prefix(copy), .relink = relink, .now = kNow}, on, silent);
  };
  const Checkup found = look(false, disk);
  CHECK(found.findings.empty());
  CHECK(found.copies.size() > 8);
  CHECK_FALSE(found.relinked.has_value());
  LinklessDisk linkless;
  CHECK(look(true, linkless).relinked->without_links);
  overwrite(copy / "generations/0001" / kModule, "ANSWER = 43\n");  // what is wrong does not become right by this
  const Checkup linked = look(true, disk);
  CHECK(linked.findings.size() == 1);
  CHECK(linked.relinked->files == found.copies.size() - 1);
  CHECK(read_file(copy / "generations/0001" / kModule) == "ANSWER = 43\n");
  doctor({.prefix = Prefix(copy), .repair = site.second.folder, .relink = true, .now = kNow}, disk, silent);
  CHECK(contents(copy) == before);
  const Checkup last = look(true, disk);
  CHECK(last.copies.empty());
  CHECK(last.relinked->files == 0);
}

TEST_CASE("stopped at any change, --relink leaves a healthy prefix and less to do") {
  const Installed site;
  const auto before = contents(site.root());
  bundle::Progress silent(nullptr);
  int stops = 0;
  for (int k = 0; k < 400; ++k) {
    const fs::path copy = site.dir / ("copy" + std::to_string(k));
    copy_without_links(site.root(), copy);
    StoppingDisk disk(k);
    bool stopped = false;
    try {
      doctor({.prefix = Prefix(copy), .relink = true, .now = kNow}, disk, silent);
    } catch (const StoppingDisk::Stop&) {
      stopped = true;
      ++stops;
    }
    Disk good;
    const Checkup after = doctor({.prefix = Prefix(copy), .relink = true, .now = kNow}, good, silent);
    CHECK(after.findings.empty());
    CHECK(contents(copy) == before);
    CHECK(!fs::exists(Prefix(copy).staging()));
    fs::remove_all(copy);
    if (!stopped) break;
  }
  CHECK(stops > 10);
  CHECK(stops < 400);
}

TEST_CASE("folders that others may write into are found") {
  const Installed site;
  fs::permissions(site.prefix().store(), fs::perms(0777));
  fs::permissions(site.in_generation(1, "bin"), fs::perms(0775));
  const Checkup found = site.check();
  REQUIRE(found.findings.size() == 2);
  CHECK(finding_of(found, "store")->kind == Kind::Mode);
  CHECK(finding_of(found, "generations/0001/bin")->got == "mode 0775");
}

TEST_CASE("files of another owner are found") {
  if (::geteuid() != 0) {
    sealift::test::left_out("only root gives files away");
    return;
  }
  const Installed site;
  REQUIRE(::chown(site.in_generation(1, kModule).c_str(), 4711, 4711) == 0);
  REQUIRE(::lchown(site.in_generation(2, "bin/alias").c_str(), 4711, 4711) == 0);
  const Checkup found = site.check();
  REQUIRE(found.findings.size() == 2);
  CHECK(found.findings[0].kind == Kind::Owner);
  CHECK(found.findings[0].paths.size() == 3);
  CHECK(found.findings[0].got == "user 4711");
  CHECK(site.repair().findings.empty());
}

TEST_CASE("a generation whose record is gone or says nothing of places is named, the others are checked") {
  const Installed site;
  overwrite(site.in_generation(1, "generation.json"), "{");
  fs::remove(site.in_generation(2, "share/notes.txt"));
  const Checkup found = site.check();
  CHECK(finding_of(found, "generations/0001/generation.json")->kind == Kind::Changed);
  CHECK(finding_of(found, "generations/0002/share/notes.txt")->kind == Kind::Missing);
  const Checkup repaired = site.repair();
  CHECK(repaired.findings.size() == 1);
  CHECK(repaired.repaired.size() == 1);
}

TEST_CASE("what the interpreter loads from outside the generation is named, and that it cannot import") {
  if (!host_python_is_there()) return;
  const Site site;
  TinyBundle tiny = environment();
  tiny.imports = {"demo"};
  tiny.items.push_back(borrowed_python("shift\n"));  // -I, with which it would not see this generation
  site.apply(site.make(tiny));
  Disk disk;
  bundle::Progress silent(nullptr);
  const DoctorOptions options{.prefix = site.prefix(), .repair = {}, .now = kNow};
  const Checkup outside = doctor(options, disk, silent);
  REQUIRE(outside.libraries);
  REQUIRE(finding_of(outside, "/python3") != nullptr);  // the borrowed interpreter itself
  CHECK(finding_of(outside, "/python3")->kind == Kind::Outside);
  CHECK(finding_of(outside, "/libc.so") == nullptr);
  CHECK(verdict(outside) == bundle::ErrorCode::SelfTest);
  const LoadedLibraries broken =
      loaded_libraries(site.prefix().generation(1), "bin/python3", {"demo", "no_such_module"});
  CHECK(broken.fault.find("no_such_module") != std::string::npos);
  overwrite(site.prefix().generation(1) / kModule, "import os; os.abort()");
  const Checkup changed = doctor(options, disk, silent);
  CHECK(!changed.libraries);  // nothing that was changed is started
  CHECK(changed.notes.size() == 1);
}

TEST_CASE("the C library and the GPU's driver are the host's, whatever looks like them is not") {
  for (const char* name :
       {"libc.so.6", "libc-2.31.so", "ld-linux-x86-64.so.2", "ld-2.28.so", "libm.so.6", "libdl.so.2",
        "libpthread-2.28.so", "libnss_files.so.2", "libcuda.so.1", "libcuda.so.580.65.06", "libnvidia-ml.so.1"})
    CHECK_MESSAGE(bundle::may_come_from_target(name), name);
  for (const char* name : {"libcudart.so.13", "libcrypto.so.3", "libcx.so", "libstdc++.so.6", "libmpi.so.40",
                           "libc10.so", "libcublas.so.13", "libldap.so.2", "libnccl.so.2", "python3.11"})
    CHECK_MESSAGE(!bundle::may_come_from_target(name), name);
}

TEST_CASE("what is missing while somebody else changes the prefix is no verdict: the look is refused, not believed") {
  const Installed site;
  Disk disk;
  fs::rename(site.in_generation(2, kModule), site.dir / "gone");  // as it may look amid a gc
  CHECK(!site.check().findings.empty());
  std::optional<PrefixLock> gc(std::in_place, site.prefix(), disk, "gc");
  CHECK_REFUSED(site.check(), Conflict, "sealift-install gc");
  fs::rename(site.dir / "gone", site.in_generation(2, kModule));
  CHECK(site.check().findings.empty());  // nothing is wrong, no matter who is at work
}

TEST_CASE("what a machine lacks that no bundle carries is noted: certificate authorities and time zones") {
  if (!host_python_is_there()) return;
  const Site site;
  TinyBundle tiny = environment();
  tiny.items.push_back(borrowed_python("shift\n"));
  site.apply(site.make(tiny));
  CHECK(machine_notes(site.prefix(), Machine{}).size() == 2);
  Machine whole;
  whole.authorities = "/etc/ssl/ca-bundle.pem";
  whole.time_zones = true;
  CHECK(machine_notes(site.prefix(), whole).empty());
  whole.time_zones = false;
  const std::vector<std::string> notes = machine_notes(site.prefix(), whole);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("wheel tzdata") != std::string::npos);
}
