// SPDX-License-Identifier: Apache-2.0
// Rows M01 to M22, M25, M26 and M28 to M31: manifests with one fault each, made from a good one.
#pragma once

#include <functional>

#include "bundle/core/json.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "tests/support/hostile/hostile_case.hpp"

namespace sealift::test {

// A program at 512 and a wheel at 2048 of a payload of two volumes; the last chunks begin at 2148 and 6244.
inline bundle::Manifest good_manifest() {
  using namespace bundle;
  Manifest manifest{.name = "env", .channel = "prod", .version = 3, .created = "2026-01-01T00:00:00Z"};
  manifest.target = {.arch = "x86_64", .glibc = {2, 28}};
  manifest.glibc_floor = {2, 17};
  manifest.payload = {.size = 10000,
                      .chunk_size = 4096,
                      .chunk_list_digest = sha256({}),
                      .volumes = {{.name = "env-3.vol001", .size = 6244}, {.name = "env-3.vol002", .size = 3756}}};
  Entry program{.path = SafePath::parse("programs/tool", ""),
                .size = 3000,
                .sha256 = sha256(as_bytes("x")),
                .encoding = Encoding::Zstd,
                .offset = 512,
                .stored_size = 1000,
                .stored_sha256 = sha256(as_bytes("y"))};
  program.executable = true;
  const Entry wheel{.path = SafePath::parse("wheels/a-1-py3-none-any.whl", ""),
                    .kind = EntryKind::Wheel,
                    .size = 100,
                    .sha256 = sha256(as_bytes("z")),
                    .offset = 2048,
                    .stored_size = 100,
                    .stored_sha256 = sha256(as_bytes("z"))};
  manifest.entries = {program, wheel};
  manifest.environment.placements = {{.entry = program.path, .into = "bin/tool"}, {.entry = wheel.path, .into = ""}};
  manifest.payload.cuts = cuts_of(manifest.entries, manifest.payload.size);
  manifest.environment.imports = {"torch"};
  manifest.companions = {{.name = "sealift-install", .size = 9, .sha256 = sha256(as_bytes("i"))}};
  return manifest;
}

// The same as a delta: the wheel is not carried.
inline bundle::Manifest good_delta() {
  bundle::Manifest manifest = good_manifest();
  bundle::Entry& wheel = manifest.entries[1];
  wheel.absent = true;
  wheel.offset = wheel.stored_size = 0;
  wheel.stored_sha256 = {};
  wheel.content = bundle::sha256(bundle::as_bytes("its chunks"));
  manifest.payload.cuts = bundle::cuts_of(manifest.entries, manifest.payload.size);
  manifest.payload.volumes[0].size = 5608, manifest.payload.volumes[1].size = 4392;  // the wheel cuts nothing
  manifest.base = bundle::sha256(bundle::as_bytes("an inventory"));
  manifest.installer_level = 2;
  return manifest;
}

// The same as a delta that carries the wheel as a patch.
inline bundle::Manifest good_patch() {
  bundle::Manifest manifest = good_manifest();
  bundle::Entry& wheel = manifest.entries[1];
  wheel.encoding = bundle::Encoding::Patch;
  wheel.base = bundle::sha256(bundle::as_bytes("an older wheel's chunks"));
  manifest.base = bundle::sha256(bundle::as_bytes("an inventory"));
  manifest.installer_level = 5;
  return manifest;
}

// The first one with an image, in place of the program that was at 512: it has no placement.
inline bundle::Manifest good_image() {
  bundle::Manifest manifest = good_manifest();
  const bundle::Entry image{.path = bundle::SafePath::parse("environment/image.sqfs", ""),
                            .kind = bundle::EntryKind::Squashfs,
                            .size = 4096,
                            .sha256 = bundle::sha256(bundle::as_bytes("i")),
                            .offset = 4096,
                            .stored_size = 4096,
                            .stored_sha256 = bundle::sha256(bundle::as_bytes("i")),
                            .verity = bundle::sha256(bundle::as_bytes("its tree"))};
  manifest.entries.insert(manifest.entries.begin(), image);
  manifest.payload.cuts = bundle::cuts_of(manifest.entries, manifest.payload.size);
  manifest.payload.volumes[0].size = 4096, manifest.payload.volumes[1].size = 5904;
  manifest.installer_level = 8;
  return manifest;
}

// The same with the image alone: what it was made of is listed.
inline bundle::Manifest good_image_alone() {
  bundle::Manifest manifest = good_image();
  for (bundle::Entry& entry : manifest.entries) {
    if (entry.kind == bundle::EntryKind::Squashfs) continue;
    entry.absent = true;
    entry.encoding = bundle::Encoding::Identity;
    entry.offset = entry.stored_size = 0;
    entry.stored_sha256 = {};
    entry.content = bundle::sha256(bundle::as_bytes("its chunks"));
  }
  manifest.payload.cuts = bundle::cuts_of(manifest.entries, manifest.payload.size);
  return manifest;
}

// The first one with recovery data: three pieces, of 2148, 4096 and 3756 bytes, and two recovery chunks.
inline bundle::Manifest good_recovery() {
  bundle::Manifest manifest = good_manifest();
  manifest.payload.recovery = {
      .groups = 1,
      .parity = 2,
      .list_digest = bundle::sha256({}),
      .files = {{.name = "env-3.rec001", .size = 4096}, {.name = "env-3.rec002", .size = 4096}}};
  manifest.installer_level = 5;
  return manifest;
}

inline HostileCases hostile_manifests() {
  using bundle::ErrorCode;
  using bundle::Json;
  using bundle::write_json;
  const std::string good = write_manifest(good_manifest());
  const Json document = Json::parse(good);
  HostileCases cases;
  const auto add = [&](const char* row, const char* name, std::string bytes, const char* word,
                       ErrorCode code = ErrorCode::Format) {
    cases.push_back(
        {.row = row, .name = name, .bytes = std::move(bytes), .code = code, .word = word, .file = "env-3.seal"});
  };
  const auto with = [&](const char* row, const char* name, const char* pointer, const Json& value, const char* word,
                        ErrorCode code = ErrorCode::Format) {
    Json json = document;
    json[Json::json_pointer(pointer)] = value;
    add(row, name, write_json(json), word, code);
  };
  const auto text = [&](const char* row, const char* name, const std::string& before, const std::string& after,
                        const char* word) {
    std::string bytes = good;
    add(row, name, bytes.replace(bytes.find(before), before.size(), after), word);
  };
  // Further program entries beside the good ones, each with bytes of its own.
  const auto paths = [&](const char* row, const char* name, std::vector<std::string> more, const char* word) {
    Json json = document;
    std::uint64_t offset = 3072;
    for (const std::string& path : more) {
      Json entry = document["entries"][0];
      entry["path"] = path, entry["offset"] = offset;
      offset += 1024;
      json["entries"].push_back(entry);
    }
    std::sort(json["entries"].begin(), json["entries"].end(),
              [](const Json& a, const Json& b) { return a["path"].get<std::string>() < b["path"].get<std::string>(); });
    add(row, name, write_json(json), word);
  };

  add("M01", "empty", "", "does not parse");
  add("M01", "one-byte", "{", "does not parse");
  add("M03", "byte-order-mark", "\xef\xbb\xbf" + good, "byte order mark");
  text("M03", "invalid-utf-8", "\"prod\"", "\"pr\xffod\"", "does not parse");
  text("M03", "overlong-utf-8", "\"prod\"", "\"pr\xc0\xafod\"", "does not parse");
  text("M03", "lone-surrogate", "\"prod\"", "\"pr\\ud800od\"", "does not parse");
  text("M03", "utf-16", good, std::string("\xff\xfe{\0}\0", 6), "does not parse");
  text("M04", "duplicate-key", "\"name\":\"env\"", "\"name\":\"env\",\"name\":\"env\"", "stands twice");
  text("M04", "duplicate-key-in-entry", "\"executable\":true", "\"executable\":true,\"executable\":true", "executable");
  text("M04", "duplicate-key-by-escape", "\"name\":\"env\"", "\"name\":\"env\",\"n\\u0061me\":\"env\"", "stands twice");
  add("M05", "deep-arrays", std::string(100'000, '['), "deeper than 32");
  std::string objects;
  for (int i = 0; i < 20'000; ++i) objects += "{\"a\":";
  add("M05", "deep-objects", objects, "deeper than 32");
  std::string many = "[[]";
  for (int i = 0; i < 2'100'000; ++i) many += ",[]";
  add("M05", "two-million-values", many + "]", "more than 2000000 values");
  for (const auto& [name, number] :
       std::vector<std::pair<const char*, const char*>>{{"float", "3.0"},
                                                        {"exponent", "3e0"},
                                                        {"minus-zero", "-0"},
                                                        {"minus-one", "-1"},
                                                        {"two-to-the-53", "9007199254740992"},
                                                        {"two-to-the-64", "18446744073709551616"}})
    text("M06", name, "\"version\":3", std::string("\"version\":") + number, "integer");
  text("M06", "leading-zero", "\"version\":3", "\"version\":03", "does not parse");
  text("M06", "not-a-number", "\"version\":3", "\"version\":NaN", "does not parse");
  add("M07", "trailing-byte", good + "x", "does not parse");
  add("M07", "trailing-nul", good + std::string(1, '\0'), "does not parse");
  add("M07", "second-document", good + good, "does not parse");
  with("M08", "unknown-key", "/surprise", 1, "surprise");
  with("M08", "unknown-key-in-entry", "/entries/0/surprise", 1, "surprise");
  with("M08", "newer-format", "/format", 3, "format 3", ErrorCode::CannotCheck);
  with("M08", "older-format", "/format", 1, "pack it again", ErrorCode::CannotCheck);
  with("M08", "newer-installer", "/installer_level", 99, "level 99", ErrorCode::CannotCheck);
  with("M08", "unknown-kind", "/entries/0/kind", "firmware", "firmware", ErrorCode::CannotCheck);
  for (const auto& [name, path] : std::vector<std::pair<const char*, std::string>>{{"parent", "../x"},
                                                                                   {"absolute", "/x"},
                                                                                   {"empty-part", "a//b"},
                                                                                   {"dot", "a/./b"},
                                                                                   {"dot-dot", "a/../../b"},
                                                                                   {"empty", ""},
                                                                                   {"nul", std::string("a\0b", 3)},
                                                                                   {"backslash", "a\\b"},
                                                                                   {"newline", "a\nb"},
                                                                                   {"c1-control",
                                                                                    "a\xc2\x9b"
                                                                                    "b"},
                                                                                   {"drive", "c:/x"},
                                                                                   {"trailing-slash", "a/"}}) {
    with("M09", name, "/entries/0/path", path, "not safe");
    with("M09", (std::string("place-") + name).c_str(), "/environment/placements/0/into", path.empty() ? "/" : path,
         "not safe");
  }
  with("M09", "site-packages-outside", "/environment/site_packages", "../lib", "not safe");
  with("M09", "interpreter-outside", "/environment/interpreter", "/bin/sh", "not safe");
  paths("M10", "case", {"programs/Tool"}, "programs/Tool and programs/tool");
  paths("M10", "case-of-a-folder", {"Programs/tool"}, "upper and lower case");
  paths("M10", "case-that-changes-length",
        {"stra\xc3\x9f"
         "e",
         "STRASSE"},
        "upper and lower case");
  paths("M10", "kelvin-sign", {"k", "\xe2\x84\xaa"}, "normal form C");
  paths("M10", "greek-final-sigma", {"\xcf\x83", "\xcf\x82"}, "upper and lower case");
  paths("M10", "decomposed", {"caf\xc3\xa9", "cafe\xcc\x81"}, "normal form C");
  paths("M11", "below-a-file", {"wheels/a-1-py3-none-any.whl/x"}, "below another");
  paths("M11", "below-a-file-not-adjacent", {"a", "a-b", "a/b"}, "below another");
  paths("M11", "below-a-file-but-for-case", {"a", "A/b"}, "below another");
  with("M12", "part-of-256-bytes", "/entries/0/path", std::string(256, 'a'), "longer than 255");
  std::string deep = "a";
  while (deep.size() < 5000) deep += "/a";
  with("M12", "path-of-5000-bytes", "/entries/0/path", deep, "too long");
  with("M12", "place-of-5000-bytes", "/environment/placements/0/into", deep, "too long");
  with("M14", "sizes-beyond-the-payload", "/entries/0/stored_size", 9489, "stored_size");
  with("M14", "offset-and-size-that-wrap", "/entries/0/offset", (std::uint64_t{1} << 53) - 1, "offset");
  {
    Json json = document;
    for (Json& entry : json["entries"]) entry["installed_size"] = bundle::kMaxPayloadSize;
    add("M14", "installed-sizes-that-add-up", write_json(json), "too large together");
    json = document;
    for (Json& entry : json["entries"]) entry["installed_files"] = bundle::kMaxEntries;
    add("M14", "installed-files-that-add-up", write_json(json), "too large together");
  }
  with("M15", "short-digest", "/entries/0/sha256", "abcd", "SHA-256");
  with("M15", "upper-case-digest", "/entries/0/sha256", std::string(64, 'A'), "SHA-256");
  with("M15", "md5", "/payload/digest", "md5", "md5", ErrorCode::CannotCheck);
  with("M15", "sha1", "/payload/digest", "sha1", "sha1", ErrorCode::CannotCheck);
  with("M16", "volume-twice", "/payload/volumes/1/name", "env-3.vol001", "in order");
  with("M16", "volume-left-out", "/payload/volumes/1/name", "env-3.vol003", "in order");
  with("M16", "volume-elsewhere", "/payload/volumes/1/name", "../env-3.vol002", "in order");
  with("M16", "volume-of-half-a-chunk", "/payload/volumes/0/size", 6243, "whole chunks");
  with("M16", "volume-cut-as-if-nothing-lay-in-it", "/payload/volumes/0/size", 4096, "whole chunks");
  with("M16", "volume-of-nothing", "/payload/volumes/1/size", 0, "whole chunks");
  with("M16", "no-volumes", "/payload/volumes", Json::array(), "add up");
  with("M16", "entries-overlap", "/entries/1/offset", 1500, "overlap");
  with("M16", "one-blob-two-digests", "/entries/1/offset", 512, "overlap");
  with("M20", "installers-record", "/environment/placements/0/into", "generation.json", "reserved");
  with("M20", "installers-record-in-capitals", "/environment/placements/0/into", "Generation.JSON", "reserved");
  with("M20", "below-the-installers-record", "/environment/placements/0/into", "generation.json/x", "reserved");
  with("M20", "companion-named-as-the-seal", "/companions/0/name", "env-3.seal", "another file of the bundle");
  with("M20", "companion-named-as-a-volume", "/companions/0/name", "ENV-3.vol001", "another file of the bundle");
  with("M20", "companion-elsewhere", "/companions/0/name", "../sealift-install", "plain name");
  {
    Json json = document;
    json["companions"].push_back(json["companions"][0]);
    json["companions"][1]["name"] = "SEALIFT-INSTALL";
    add("M20", "two-companions-of-one-name", write_json(json), "another file of the bundle");
    json = document;
    json["environment"]["placements"].push_back(json["environment"]["placements"][0]);
    json["environment"]["placements"][2]["into"] = "BIN/tool";
    add("M20", "two-files-at-one-place", write_json(json), "one place");
  }
  // A delta that is good, and one with each fault.
  const auto delta = [&](const char* name, const std::function<void(Json&)>& change, const char* word) {
    Json json = Json::parse(write_manifest(good_delta()));
    change(json);
    add("M21", name, write_json(json), word);
  };
  delta(
      "absent-with-an-offset", [](Json& json) { json["entries"][1]["offset"] = 2048; }, "offset");
  delta(
      "absent-with-stored-bytes", [](Json& json) { json["entries"][1]["stored_size"] = 100; }, "stored_size");
  delta(
      "absent-with-an-encoding", [](Json& json) { json["entries"][1]["encoding"] = "identity"; }, "encoding");
  delta(
      "absent-false", [](Json& json) { json["entries"][1]["absent"] = false; }, "true was expected");
  delta(
      "absent-one", [](Json& json) { json["entries"][1]["absent"] = 1; }, "true or false");
  delta(
      "absent-without-a-base", [](Json& json) { json.erase("base"); }, "names its base");
  delta(
      "absent-at-level-1", [](Json& json) { json["installer_level"] = 1; }, "installer_level");
  delta(
      "base-that-is-no-digest", [](Json& json) { json["base"] = "latest"; }, "SHA-256");
  delta(
      "base-null", [](Json& json) { json["base"] = nullptr; }, "string");
  delta(
      "absent-without-a-name", [](Json& json) { json["entries"][1].erase("content"); }, "content");
  delta(
      "absent-with-half-a-name", [](Json& json) { json["entries"][1]["content"] = "abcd"; }, "SHA-256");
  with("M21", "name-of-what-is-there", "/entries/0/content", std::string(64, 'a'), "content");
  delta(
      "neither-absent-nor-there", [](Json& json) { json["entries"][1].erase("absent"); }, "encoding");
  with("M21", "base-with-everything-there", "/base", std::string(64, 'a'), "no absent entry");
  const auto patch = [&](const char* name, const auto& change, const char* word) {
    Json json = Json::parse(write_manifest(good_patch()));
    change(json);
    add("M26", name, write_json(json), word);
  };
  patch(
      "patch-without-what-it-builds-on", [](Json& json) { json["entries"][1].erase("base"); }, "base");
  patch(
      "patch-on-half-a-name", [](Json& json) { json["entries"][1]["base"] = "abcd"; }, "SHA-256");
  patch(
      "patch-on-a-list", [](Json& json) { json["entries"][1]["base"] = Json::array(); }, "string");
  patch(
      "whole-that-builds-on-something", [](Json& json) { json["entries"][1]["encoding"] = "zstd"; }, "base");
  patch(
      "patch-without-a-base", [](Json& json) { json.erase("base"); }, "names its base");
  patch(
      "patch-at-level-4", [](Json& json) { json["installer_level"] = 4; }, "installer_level");
  patch(
      "patch-that-is-absent", [](Json& json) { json["entries"][1]["absent"] = true; }, "content");
  patch(
      "patch-of-a-file",
      [](Json& json) {
        json["entries"][0]["base"] = json["entries"][1]["base"];
        json["entries"][0]["encoding"] = "patch";
      },
      "only a wheel");
  const auto image = [&](const char* name, const std::function<void(Json&)>& change, const char* word) {
    Json json = Json::parse(write_manifest(good_image()));
    change(json);
    add("M31", name, write_json(json), word);
  };
  image(
      "image-without-a-root-hash", [](Json& json) { json["entries"][0].erase("verity"); }, "root hash");
  image(
      "root-hash-of-a-wheel", [](Json& json) { json["entries"][2]["verity"] = std::string(64, 'a'); }, "root hash");
  image(
      "half-a-root-hash", [](Json& json) { json["entries"][0]["verity"] = "abcd"; }, "SHA-256");
  image(
      "image-of-half-a-block",
      [](Json& json) { json["entries"][0]["size"] = json["entries"][0]["stored_size"] = 2048; }, "whole blocks");
  image(
      "image-of-nothing", [](Json& json) { json["entries"][0]["size"] = json["entries"][0]["stored_size"] = 0; },
      "whole blocks");
  image(
      "two-images",
      [](Json& json) { json["entries"][1]["kind"] = "squashfs", json["entries"][1]["verity"] = std::string(64, 'a'); },
      "one image");
  image(
      "image-outside", [](Json& json) { json["entries"][0]["path"] = "../image.sqfs"; }, "not safe");
  image(
      "image-that-is-installed", [](Json& json) { json["entries"][0]["installed_files"] = 1; }, "not installed");
  image(
      "image-that-is-placed",
      [](Json& json) { json["environment"]["placements"][0]["entry"] = "environment/image.sqfs"; }, "not placed");
  image(
      "image-alone-of-what-nobody-places",
      [](Json& json) {
        json = Json::parse(write_manifest(good_image_alone()));
        json["environment"]["placements"].erase(0);
      },
      "names its base");
  image(
      "image-at-level-7", [](Json& json) { json["installer_level"] = 7; }, "installer_level");
  const auto left_out = [&](const char* name, const Json& list, const char* word, std::size_t placement = 1,
                            std::uint64_t level = 2) {
    Json json = document;
    json["installer_level"] = level;
    json["environment"]["placements"][placement]["left_out"] = list;
    add("M22", name, write_json(json), word);
  };
  left_out("left-out-of-a-file", Json::array({"bin/tool"}), "files of a wheel", 0);
  left_out("left-out-nothing", Json::array(), "a path was expected");
  left_out("left-out-a-number", Json::array({1}), "a path was expected");
  left_out("left-out-escapes", Json::array({"../x"}), "not safe");
  left_out("left-out-twice", Json::array({"a", "a"}), "sorted and unique");
  left_out("left-out-unsorted", Json::array({"b", "a"}), "sorted and unique");
  left_out("left-out-no-list", "a", "array");
  left_out("left-out-at-level-1", Json::array({"a"}), "installer_level", 1, 1);
  const auto shared = [&](const char* name, const Json& list, const char* word, std::size_t placement = 1,
                          std::uint64_t level = 7) {
    Json json = document;
    json["installer_level"] = level;
    json["environment"]["placements"][placement]["shared"] = list;
    add("M30", name, write_json(json), word);
  };
  shared("shared-of-a-file", Json::array({"demo"}), "only a wheel", 0);
  shared("shared-nothing", Json::array(), "a path was expected");
  shared("shared-escapes", Json::array({"../x"}), "not safe");
  shared("shared-unsorted", Json::array({"b", "a"}), "sorted and unique");
  shared("shared-at-level-6", Json::array({"a"}), "installer_level", 1, 6);
  const auto startup = [&](const char* name, const Json& list, const char* word, std::uint64_t level = 3) {
    Json json = document;
    json["installer_level"] = level;
    json["environment"]["startup"] = list;
    add("M25", name, write_json(json), word);
  };
  const std::string a(64, 'a'), b(64, 'b');
  startup("startup-nothing", Json::array(), "SHA-256");
  startup("startup-a-name", Json::array({"evil.pth"}), "SHA-256");
  startup("startup-twice", Json::array({a, a}), "sorted and unique");
  startup("startup-unsorted", Json::array({b, a}), "sorted and unique");
  startup("startup-no-list", a, "array");
  startup("startup-at-level-2", Json::array({a}), "installer_level", 2);
  const auto built = [&](const char* name, std::size_t entry, const Json& value, const char* word,
                         std::uint64_t level = 6, ErrorCode code = ErrorCode::Format) {
    Json json = document;
    json["installer_level"] = level;
    json["entries"][entry]["built"] = value;
    add("M29", name, write_json(json), word, code);
  };
  built("built-that-is-no-wheel", 0, "sandboxed", "only a wheel");
  built("built-true", 1, true, "string");
  built("built-null", 1, nullptr, "string");
  built("built-by-nobody-knows", 1, "elsewhere", "elsewhere", 6, ErrorCode::CannotCheck);
  built("built-in-capitals", 1, "Sandboxed", "Sandboxed", 6, ErrorCode::CannotCheck);
  built("built-empty", 1, "", "built", 6, ErrorCode::CannotCheck);
  built("built-at-level-5", 1, "sandboxed", "installer_level", 5);
  built("unsandboxed-at-level-1", 1, "unsandboxed", "installer_level", 1);
  const auto recovery = [&](const char* name, const char* pointer, const Json& value, const char* word) {
    Json json = Json::parse(write_manifest(good_recovery()));
    json[Json::json_pointer(pointer)] = value;
    add("M28", name, write_json(json), word);
  };
  const Json file = {{"name", "env-3.rec001"}, {"size", 4096}};
  recovery("recovery-no-object", "/payload/recovery", 5, "object");
  recovery("recovery-no-groups", "/payload/recovery/groups", 0, "a group at least");
  recovery("recovery-more-groups-than-pieces", "/payload/recovery/groups", 4, "a group at least");
  recovery("recovery-groups-that-wrap", "/payload/recovery/groups", (std::uint64_t{1} << 53) - 1, "groups");
  recovery("recovery-no-parity", "/payload/recovery/parity", 0, "mends nothing");
  recovery("recovery-of-256", "/payload/recovery/parity", 253, "at most 255");
  recovery("recovery-parity-of-256", "/payload/recovery/parity", 256, "parity");
  recovery("recovery-parity-that-wraps", "/payload/recovery/parity", (std::uint64_t{1} << 53) - 1, "parity");
  recovery("recovery-chunk-left-out", "/payload/recovery/files", Json::array({file}), "are missing");
  recovery("recovery-without-files", "/payload/recovery/files", Json::array(), "are missing");
  recovery("recovery-file-twice", "/payload/recovery/files/1/name", "env-3.rec001", "in order");
  recovery("recovery-file-elsewhere", "/payload/recovery/files/1/name", "../env-3.rec002", "in order");
  recovery("recovery-file-named-as-a-volume", "/payload/recovery/files/1/name", "env-3.vol002", "in order");
  recovery("recovery-of-half-a-chunk", "/payload/recovery/files/1/size", 4095, "whole recovery chunks");
  recovery("recovery-of-nothing", "/payload/recovery/files/1/size", 0, "whole recovery chunks");
  recovery("recovery-of-too-much", "/payload/recovery/files/1/size", 8192, "whole recovery chunks");
  recovery("recovery-of-a-pebibyte", "/payload/recovery/files/1/size", bundle::kMaxPayloadSize,
           "whole recovery chunks");
  recovery("recovery-list-of-md5", "/payload/recovery/list_digest", std::string(32, 'a'), "SHA-256");
  recovery("recovery-unknown-key", "/payload/recovery/code", "xor", "code");
  recovery("recovery-at-level-4", "/installer_level", 4, "installer_level");
  recovery("recovery-companion-of-its-name", "/companions/0/name", "env-3.rec001", "another file of the bundle");
  {  // 16 groups of one piece each, of 16 MiB, with 9 recovery chunks: more than anybody holds at a time
    Json json = Json::parse(write_manifest(good_recovery()));
    const std::uint64_t piece = bundle::kMaxChunkSize, size = 16 * piece;
    json["payload"]["chunk_size"] = piece, json["payload"]["size"] = size;
    json["payload"]["volumes"] = Json::array({{{"name", "env-3.vol001"}, {"size", size}}});
    json["payload"]["recovery"]["groups"] = 16, json["payload"]["recovery"]["parity"] = 9;
    add("M28", "recovery-beyond-memory", write_json(json), "exceed 128 MiB");
  }
  return cases;
}

}  // namespace sealift::test
