// SPDX-License-Identifier: Apache-2.0
// A bundle of models or data, added to an environment: what a prefix then has, what keeps it through updates, what
// takes it out again, and what may not be added.
#include <functional>

#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/print/apply_report.hpp"
#include "installer/print/status_report.hpp"
#include "installer/upkeep/gc.hpp"
#include "installer/upkeep/inventory.hpp"
#include "installer/upkeep/root_trial.hpp"
#include "installer/upkeep/switch.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/manifest/variables.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

TinyBundle environment(std::uint64_t version = 1) {
  TinyBundle tiny{.name = "env", .version = version};
  tiny.items = {wheel_item({}), file_item("files/python", "#!/bin/sh\necho python\n", "bin/python3", true),
                file_item("environment/variables", "SITE_A=1\n", std::string(bundle::kVariablesPlace)),
                file_item("files/own", "version " + std::to_string(version) + "\n", "share/own")};
  return tiny;
}

TinyBundle weights(std::uint64_t version = 1, const std::string& into = "models/tiny/weights") {
  return {.name = "weights",
          .version = version,
          .items = {file_item("models/tiny/weights", "weights of " + std::to_string(version), into)}};
}

struct Added : Site {
  MadeBundle first = make(environment(), "env-1"), second = make(environment(2), "env-2"),
             models = make(weights(), "weights-1");

  Added() { Site::apply(first); }
  Applied with(const MadeBundle& made, Additions additions, bool dry_run = false) const {
    ApplyOptions asked = options(made);
    asked.additions = additions;
    asked.dry_run = dry_run;
    return Site::apply(asked);
  }
  Applied add(const MadeBundle& made) const { return with(made, Additions::Add); }
  std::string weights_there() const {
    const fs::path file = current() / "models/tiny/weights";
    return fs::exists(file) ? read_file(file) : "";
  }
  std::vector<Deviation> findings(const fs::path& repair = {}) const {
    Disk disk;
    bundle::Progress silent(nullptr);
    return doctor({.prefix = prefix(), .repair = repair, .now = kNow}, disk, silent).findings;
  }
};

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("models are added to an environment, which stays as it was and says what it has") {
  const Added site;
  CHECK_REFUSED(site.apply(site.models), Conflict, "apply --add");
  const Applied planned = site.with(site.models, Additions::Add, true);
  CHECK(has(text_of(planned, site.options(site.models)), "weights version 1, added to env version 1"));
  CHECK(site.weights_there().empty());

  const Applied applied = site.add(site.models);
  CHECK(applied.generation == 2);
  CHECK(applied.unpacked == std::vector<std::string>{"models/tiny/weights"});
  CHECK(site.weights_there() == "weights of 1");
  CHECK(read_file(site.current() / "share/own") == "version 1\n");
  CHECK(fs::exists(site.site_packages() / "demo/__init__.py"));
  CHECK(status_of_path(site.current() / "share/own").st_ino ==
        status_of_path(site.prefix().generation(1) / "share/own").st_ino);
  CHECK_FALSE(fs::exists(site.prefix().generation(1) / "models"));

  const GenerationRecord record = read_generation_record(site.prefix().generation(2), 2);
  CHECK(record.name == "env");
  CHECK(record.identity == bundle::open(site.first.folder).seal.manifest.digest());
  REQUIRE(record.added.size() == 1);
  CHECK(record.added[0].identity == bundle::open(site.models.folder).seal.manifest.digest());
  CHECK(has(text_of(status_of(site.prefix())), "added     weights version 1, sha256:"));
  CHECK(json_of(status_of(site.prefix()))["generations"][1]["added"][0]["name"] == "weights");
  CHECK(has(receipt_page(record), "added       weights version 1, channel test"));
  CHECK(take_inventory(site.prefix()).found.generations.size() == 2);
  CHECK(site.findings().empty());
  CHECK(site.add(site.models).action == InstallPlan::Action::Nothing);
  CHECK(site.apply(site.first).action == InstallPlan::Action::Nothing);  // it is current, with what was added
}

TEST_CASE("an added bundle's next version takes the place of its last one, and gc takes that one's files") {
  const Added site;
  site.add(site.models);
  TinyBundle data{.name = "data", .items = {file_item("data/rows", "rows", "data/rows")}};
  CHECK(site.add(site.make(data, "data-1")).generation == 3);
  CHECK(site.add(site.make(weights(2), "weights-2")).generation == 4);
  CHECK(site.weights_there() == "weights of 2");
  CHECK(read_file(site.current() / "data/rows") == "rows");
  const std::vector<GenerationRecord::Bundle> added = read_generation_record(site.prefix().generation(4), 4).added;
  REQUIRE(added.size() == 2);
  CHECK(words_for(added[0]) == "data version 1");
  CHECK(words_for(added[1]) == "weights version 2");
  Disk disk;
  CHECK(gc({.prefix = site.prefix(), .keep = 1}, disk).items.size() == 1);  // the older weights
  CHECK(site.findings().empty());
  CHECK_REFUSED(site.add(site.models), Rollback, "weights");
}

TEST_CASE("an environment's next version keeps what was added, unless it is to leave that out") {
  const Added site;
  site.add(site.models);
  SUBCASE("kept") {
    const Applied applied = site.apply(site.second);
    CHECK(applied.generation == 3);
    CHECK(has(text_of(applied, site.options(site.second)), "beside    weights version 1"));
    CHECK(read_file(site.current() / "share/own") == "version 2\n");
    CHECK(site.weights_there() == "weights of 1");
    CHECK(site.findings().empty());
  }
  SUBCASE("left out") {
    CHECK(site.with(site.second, Additions::Drop).generation == 3);
    CHECK(site.weights_there().empty());
    CHECK(read_generation_record(site.prefix().generation(3), 3).added.empty());
  }
  SUBCASE("left out of the same version, which is an older generation") {
    const Applied applied = site.with(site.first, Additions::Drop);
    CHECK(applied.action == InstallPlan::Action::SwitchTo);
    CHECK(applied.generation == 1);
  }
  SUBCASE("taken back by a switch") {
    Disk disk;
    switch_to(site.prefix(), 1, disk);
    CHECK(site.weights_there().empty());
    CHECK(site.apply(site.second).generation == 3);
    CHECK(site.weights_there().empty());  // what is current had none
  }
}

TEST_CASE("the catalogue of an added bundle stays in the bundle, where a repository reads it") {
  const Added site;
  TinyBundle tiny = weights();
  tiny.items.push_back(
      file_item(std::string(bundle::kHubCatalogueEntry), "{}", std::string(bundle::kHubCataloguePlace)));
  site.add(site.make(tiny, "hub"));
  CHECK(site.weights_there() == "weights of 1");
  CHECK_FALSE(fs::exists(site.current() / bundle::kHubCataloguePlace));
}

TEST_CASE("additions that are not allowed are refused before anything is written, with what to do instead") {
  const Added site;
  TinyBundle tiny = weights();
  std::string words;
  SUBCASE("an interpreter") {
    tiny.items.push_back(file_item("files/other", "python", "bin/python3", true));
    words = "without --add";
  }
  SUBCASE("a tree that may have one") {
    tiny.items.push_back(tree_item("trees/root.tar", {{tar_file("bin/python3", true), "python"}}));
    words = "without --add";
  }
  SUBCASE("a wheel") {
    tiny.items.push_back(wheel_item({.name = "more"}));
    words = "the wheel wheels/more";
  }
  SUBCASE("variables") {
    tiny.items.push_back(file_item("environment/variables", "SITE_B=1\n", std::string(bundle::kVariablesPlace)));
    words = "without [environment]";
  }
  SUBCASE("a library beside the interpreter's") {
    tiny.items.push_back(file_item("native/libssl.so.3", "not ours", "lib/libssl.so.3"));
    words = "native/libssl.so.3, placed as lib/libssl.so.3";
  }
  SUBCASE("a program") {
    tiny.items.push_back(file_item("programs/tool", "#!/bin/sh\n", "tools/tool", true));
    words = "the environment's own job";
  }
  SUBCASE("what excuses libraries from being checked") {
    tiny.items.push_back(file_item("files/host", "libcuda.so.1\n", "share/sealift/host_libraries"));
    words = "placed as share/sealift/host_libraries";
  }
  SUBCASE("the environment's own name") {
    tiny.name = "env";
    tiny.version = 7;
    words = "a name of its own";
  }
  SUBCASE("a path that the environment has") {
    tiny.items.push_back(file_item("files/own", "mine", "share/own"));
    words = "another `into`";
  }
  const MadeBundle made = site.make(tiny, "refused");
  const auto before = installed(site.prefix().generations());
  CHECK_REFUSED(site.add(made), Conflict, words);
  CHECK(installed(site.prefix().generations()) == before);
  CHECK(site.weights_there().empty());
}

TEST_CASE("a prefix that is new, or has models alone, takes no addition") {
  const Site site;
  const auto add = [&](const MadeBundle& made) {
    ApplyOptions asked = site.options(made);
    asked.additions = Additions::Add;
    return site.apply(asked);
  };
  const MadeBundle models = site.make(weights(), "weights");
  CHECK_REFUSED(add(models), Conflict, "no generation is current");
  CHECK_FALSE(fs::exists(site.prefix().folder()));
  site.apply(models);
  TinyBundle data{.name = "data", .items = {file_item("data/rows", "rows", "data/rows")}};
  CHECK_REFUSED(add(site.make(data, "data")), Conflict, "has no interpreter");
}

TEST_CASE("an environment whose next version has what was added says how to leave that out") {
  const Added site;
  site.add(site.models);
  TinyBundle tiny = environment(2);
  tiny.items.push_back(file_item("models/own", "its own", "models/tiny/weights"));
  const MadeBundle made = site.make(tiny, "env-with-models");
  CHECK_REFUSED(site.apply(made), Conflict, "--drop-added");
  CHECK(site.weights_there() == "weights of 1");
  CHECK(site.with(made, Additions::Drop).generation == 3);
  CHECK(site.weights_there() == "its own");
}

TEST_CASE("damage to what was added is found, and put right from the bundle that brought it") {
  const Added site;
  site.add(site.models);
  const fs::path file = site.current() / "models/tiny/weights";
  fs::permissions(file, fs::perms(0644));
  flip_bit(file, 3);
  CHECK_FALSE(site.findings().empty());
  CHECK(site.findings(site.models.folder).empty());
  CHECK(site.weights_there() == "weights of 1");
}

TEST_CASE("what was withdrawn since is kept in no further generation, and said how to go on") {
  const Added site;
  site.add(site.models);
  const auto accept_root = [&](const std::function<void(bundle::Root&)>& change) {
    const bundle::Root next = next_root(bundle::parse_root(one_key_root(site.key).payload, "root 1"), change);
    write_file(site.dir / "next.json", write_envelope(signed_root(next, {&site.key})));
    Disk disk;
    update_root(site.prefix(), disk, {site.dir / "next.json"});
  };
  const auto accept = [&](const bundle::Digest& withdrawn) {
    accept_root([&](bundle::Root& root) {
      root.revoked_bundles[withdrawn] = {.date = "2026-02-01T00:00:00Z", .reason = "a wrong model"};
    });
  };
  const TinyBundle data{.name = "data", .items = {file_item("data/rows", "rows", "data/rows")}};
  SUBCASE("an addition") {
    accept(bundle::open(site.models.folder).seal.manifest.digest());
    CHECK_REFUSED(site.apply(site.second), Revoked, "weights version 1");
    CHECK_REFUSED(site.apply(site.second), Revoked, "--drop-added");
    CHECK_REFUSED(site.add(site.make(data, "data")), Revoked, "a wrong model");
    CHECK(site.add(site.make(weights(2), "weights-2")).generation == 3);  // in its place
    CHECK(site.with(site.second, Additions::Drop).generation == 4);
  }
  SUBCASE("an addition below the root's floor") {
    const std::string channel = read_generation_record(site.prefix().generation(2), 2).added.at(0).channel;
    accept_root([&](bundle::Root& root) { root.floors[{.channel = channel, .name = "weights"}] = 2; });
    CHECK_REFUSED(site.apply(site.second), Revoked, "the root refuses versions below 2");
    CHECK_REFUSED(site.add(site.make(data, "data")), Revoked, "weights version 1");
    CHECK(site.add(site.make(weights(2), "weights-2")).generation == 3);
    CHECK(site.apply(site.second).generation == 4);
  }
  SUBCASE("the environment") {
    accept(bundle::open(site.first.folder).seal.manifest.digest());
    CHECK_REFUSED(site.add(site.make(data, "data")), Revoked, "env version 1");
    CHECK(site.apply(site.second).generation == 3);
  }
}

TEST_CASE("a store that has lost a part of the environment takes no addition, and says which part") {
  const Added site;
  const GenerationRecord record = read_generation_record(site.prefix().generation(1), 1);
  fs::remove_all(site.prefix().store() / record.entries[0].item);
  CHECK_REFUSED(site.add(site.models), Missing, record.entries[0].path);
  CHECK_REFUSED(site.add(site.models), Missing, "doctor --repair");
}

TEST_CASE("an addition that fails its self-test is noted under its own name, and what it was added to") {
  const Site site;
  TinyBundle tiny = environment();
  tiny.imports = {"demo"};
  tiny.items[1] =
      file_item("files/python", "#!/bin/sh\n[ ! -e \"${0%/bin/python3}/models\" ] || exit 3\n", "bin/python3", true);
  site.apply(site.make(tiny, "env"));
  const MadeBundle models = site.make(weights(5), "weights");
  ApplyOptions asked = site.options(models);
  asked.additions = Additions::Add;
  CHECK_REFUSED(site.apply(asked), SelfTest, "exit code 3");

  const Status status = status_of(site.prefix());
  REQUIRE(status.failed);
  CHECK(status.failed->name == "weights");
  CHECK(status.failed->version == 5);
  CHECK(status.failed->identity == bundle::open(models.folder).seal.manifest.digest());
  CHECK(status.failed->added_to == "env version 1");
  CHECK(has(text_of(status), "weights version 5, added to env version 1, failed its self-test"));
  CHECK(json_of(status)["failed"]["added_to"] == "env version 1");

  CHECK_REFUSED(site.apply(site.make(
                    [&] {
                      TinyBundle next = tiny;
                      next.version = 2;
                      next.items[1] = file_item("files/python", "#!/bin/sh\nexit 4\n", "bin/python3", true);
                      return next;
                    }(),
                    "env-2")),
                SelfTest, "exit code 4");
  CHECK(json_of(status_of(site.prefix()))["failed"]["added_to"].is_null());
  CHECK(has(text_of(status_of(site.prefix())), "env version 2, failed its self-test"));
}

TEST_CASE("what was damaged on each medium stays in the record as long as its bundle is a part") {
  const Site site;
  const auto damaged = [&](TinyBundle tiny, const std::string& folder) {
    tiny.items.push_back(file_item("files/more", numbers_text(tiny.version, 3000), tiny.name + "/more"));
    tiny.recovery = 50;
    const MadeBundle made = site.make(tiny, folder);
    flip_bit(made.volume(0), 8 * 77);
    return made;
  };
  const auto with = [&](const MadeBundle& made, Additions additions) {
    ApplyOptions asked = site.options(made);
    asked.additions = additions;
    std::string names;
    const Applied applied = site.apply(asked);
    REQUIRE(applied.record);
    for (const bundle::MendedVolume& volume : applied.record->mended) names += volume.name + " ";
    return names;
  };
  CHECK(with(damaged(environment(), "env-1"), Additions::Keep) == "env-1.vol001 ");
  CHECK(with(damaged(weights(), "weights-1"), Additions::Add) == "env-1.vol001 weights-1.vol001 ");
  CHECK(with(damaged(weights(2), "weights-2"), Additions::Add) == "env-1.vol001 weights-2.vol001 ");
  CHECK(with(damaged(environment(2), "env-2"), Additions::Keep) == "weights-2.vol001 env-2.vol001 ");
  CHECK(with(damaged(environment(3), "env-3"), Additions::Drop) == "env-3.vol001 ");
}

TEST_CASE("an environment that an older installer made takes an addition after its bundle was applied again") {
  const Added site;
  const fs::path file = site.prefix().generation(1) / bundle::kGenerationRecord;
  bundle::Json json = bundle::parse_json(read_file(file), "record");
  json.erase("interpreter");
  json.erase("site_packages");
  for (bundle::Json& entry : json["entries"]) entry.erase("into");
  fs::permissions(file, fs::perms(0644));
  write_file(file, bundle::write_json(json) + "\n");
  fs::permissions(file, fs::perms(0444));

  CHECK_REFUSED(site.add(site.models), Conflict, "an older installer made what is current");
  CHECK_REFUSED(site.add(site.models), Conflict, "apply the environment's bundle once more");
  const Applied again = site.apply(site.first);
  CHECK(again.generation == 2);
  CHECK(again.unpacked.empty());
  CHECK(site.apply(site.first).action == InstallPlan::Action::Nothing);
  CHECK(site.add(site.models).generation == 3);
  CHECK(site.weights_there() == "weights of 1");
  REQUIRE(site.findings().size() == 1);  // of the old generation alone
  CHECK(site.findings()[0].got == "an older version wrote this record");
}

TEST_CASE("[apt] beside [apt] is refused before anything is unpacked, with what may be done") {
  const Added site;
  const auto with_apt = [](TinyBundle tiny) {
    tiny.items.push_back(file_item("files/apt/Packages", "of " + tiny.name, "apt/Packages"));
    return tiny;
  };
  site.add(site.make(with_apt(weights()), "weights-apt"));
  const auto before = installed(site.prefix().folder());
  SUBCASE("a second addition") {
    const TinyBundle data{.name = "data", .items = {file_item("data/rows", "rows", "data/rows")}};
    const MadeBundle made = site.make(with_apt(data), "data-apt");
    CHECK_REFUSED(site.add(made), Conflict, "weights version 1");
    CHECK_REFUSED(site.add(made), Conflict, "nothing was written");
    CHECK_REFUSED(site.with(made, Additions::Add, true), Conflict, "apt/Packages");
  }
  SUBCASE("the environment's next version") {
    const MadeBundle made = site.make(with_apt(environment(2)), "env-apt");
    CHECK_REFUSED(site.apply(made), Conflict, "--drop-added");
    CHECK(installed(site.prefix().folder()) == before);
    CHECK(site.with(made, Additions::Drop).generation == 3);
    return;
  }
  SUBCASE("the addition's own next version takes the place of its last one") {
    CHECK(site.add(site.make(with_apt(weights(2)), "weights-2")).generation == 3);
    return;
  }
  CHECK(installed(site.prefix().folder()) == before);
}
