// SPDX-License-Identifier: Apache-2.0
// Rightly signed manifests, each with one fault.
#include "tests/bundle/faulty/faulty_bundles.hpp"

#include <array>
#include <tuple>
#include <utility>

namespace sealift::test {

namespace {

// A rightly signed manifest that `change` made wrong.
void manifest(const std::string& name, const std::function<void(Json&)>& change) {
  const MadeBundle made = fresh("manifest-" + name);
  Json json = parse_json(write_manifest(made.manifest), "");
  change(json);
  seal_bytes(made, json.dump());
}
void manifest_text(const std::string& name, const std::string& from, const std::string& to) {
  const MadeBundle made = fresh("manifest-" + name);
  std::string text = write_manifest(made.manifest);
  text.replace(text.find(from), from.size(), to);
  seal_bytes(made, text);
}
void manifest_field(const std::string& name, const std::string& where, const Json& value) {
  manifest(name, [&](Json& json) { json[Json::json_pointer(where)] = value; });
}
// The path of an entry, with its placement.
void manifest_path(const std::string& name, const std::string& path) {
  manifest("path-" + name, [&](Json& json) {
    json["environment"]["placements"][0]["entry"] = path;
    json["entries"][0]["path"] = path;
  });
}

// The same with two entries' paths.
void two_paths(const std::string& name, const std::string& first, const std::string& second) {
  manifest("path-" + name, [&](Json& json) {
    for (int i = 0; i < 2; ++i)
      json["environment"]["placements"][i]["entry"] = json["entries"][i]["path"] = i == 0 ? first : second;
  });
}

}  // namespace

void bad_manifests() {
  manifest_text("bom", "{", "\xef\xbb\xbf{");
  manifest_text("duplicate-key", "{\"channel\"", "{\"channel\":\"x\",\"channel\"");
  manifest_text("float", "\"version\":7", "\"version\":7.0");
  manifest_text("exponent", "\"version\":7", "\"version\":7e0");
  manifest_text("leading-zero", "\"version\":7", "\"version\":07");
  manifest_text("space", ",\"version\"", ", \"version\"");
  manifest_text("line-break", "\"version\":7}", "\"version\":7}\n");
  manifest_text("nul-behind", "\"version\":7}", std::string("\"version\":7}\0", 13));
  manifest_text("escaped-letter", "\"tiny\"", "\"\\u0074iny\"");
  manifest_text("bad-utf8", "files/b", "files/\xff");
  manifest_text("overlong-utf8", "files/b", "files/\xc0\xae");
  manifest_text("deep", "\"version\":7", "\"version\":" + std::string(40, '[') + std::string(40, ']'));
  manifest_text("cut", "\"version\":7}", "");
  for (const auto& [name, where, value] : std::initializer_list<std::tuple<const char*, const char*, Json>>{
           {"unknown-key", "/extra", 1},
           {"format-1", "/format", 1},
           {"format-3", "/format", 3},
           {"level-9", "/installer_level", 9},
           {"good-level-8", "/installer_level", 8},
           {"good-level-7", "/installer_level", 7},
           {"good-level-2", "/installer_level", 2},
           {"good-level-0", "/installer_level", 0},
           {"name-bad", "/name", "../tiny"},
           {"name-other", "/name", "other"},
           {"version-negative", "/version", -1},
           {"version-large", "/version", 9007199254740992u},
           {"version-other", "/version", 8},
           {"floor-above", "/rollback_floor", 8},
           {"created-bad", "/created", "2026-13-01T00:00:00Z"},
           {"created-offset", "/created", "2026-01-01T00:00:00+00:00"},
           {"glibc-bad", "/target/glibc", "2"},
           {"good-glibc-three", "/target/glibc", "2.2.5"},
           {"glibc-huge", "/target/glibc", "2.4294967296"},
           {"arch-bad", "/target/arch", "x86/64"},
           {"digest-md5", "/payload/digest", "md5"},
           {"digest-sha1", "/payload/digest", "sha1"},
           {"digest-empty", "/payload/digest", ""},
           {"digest-sm3", "/payload/digest", "sm3"},
           {"chunk-odd", "/payload/chunk_size", 5000},
           {"chunk-small", "/payload/chunk_size", 2048},
           {"chunk-large", "/payload/chunk_size", 33554432},
           {"chunk-zero", "/payload/chunk_size", 0},
           {"chunk-other", "/payload/chunk_size", 8192},
           {"size-huge", "/payload/size", 1125899906842625u},
           {"size-more", "/payload/size", 1 << 20},
           {"size-zero", "/payload/size", 0},
           {"many-chunks", "/payload/size", 8589938688u},
           {"list-digest-short", "/payload/chunk_list_digest", "00"},
           {"list-digest-upper", "/payload/chunk_list_digest", std::string(64, 'A')},
           {"list-digest-other", "/payload/chunk_list_digest", std::string(64, '0')},
           {"no-volumes", "/payload/volumes", Json::array()},
           {"volume-name", "/payload/volumes/0/name", "tiny-7.vol002"},
           {"volume-escapes", "/payload/volumes/0/name", "../tiny-7.vol001"},
           {"volume-partial", "/payload/volumes/0/size", 8191},
           {"volume-zero", "/payload/volumes/0/size", 0},
           {"volume-huge", "/payload/volumes/0/size", 9007199254740991u},
           {"kind-unknown", "/entries/0/kind", "sparse"},
           {"encoding-unknown", "/entries/0/encoding", "lz4"},
           {"size-differs", "/entries/0/size", 1},
           {"sha-differs", "/entries/0/sha256", std::string(64, '1')},
           {"offset-outside", "/entries/0/offset", 1 << 30},
           {"stored-outside", "/entries/1/stored_size", 1 << 30},
           {"offset-huge", "/entries/1/offset", 9007199254740991u},
           {"installed-huge", "/entries/0/installed_size", 1125899906842625u},
           {"executable-number", "/entries/0/executable", 1},
           {"interpreter-absolute", "/environment/interpreter", "/bin/sh"},
           {"site-packages-up", "/environment/site_packages", "a/../b"},
           {"import-bad", "/environment/imports", Json::array({"os;x"})},
           {"placement-unknown", "/environment/placements/0/entry", "files/none"},
           {"placement-up", "/environment/placements/0/into", "../x"},
           {"file-without-place", "/environment/placements/0/into", ""},
           {"wheel-with-place", "/environment/placements/2/into", "x"},
           {"place-reserved", "/environment/placements/0/into", "Generation.json"},
           {"places-equal", "/environment/placements/0/into", "SHARE/b"},
           {"good-other-place", "/environment/placements/0/into", "elsewhere/x"}})
    manifest_field(name, where, value);
  // What came with level 2.
  const Json runtime = {{"glibc", "2.36"}, {"kernel", "3.2.0"}};
  const auto level_2 = [](const char* name, const char* where, const Json& value) {
    manifest(name, [&](Json& j) {
      j["installer_level"] = 2;
      j[Json::json_pointer(where)] = value;
    });
  };
  level_2("good-runtime", "/environment/runtime", runtime);
  level_2("good-driver", "/target/driver_floor", "525.60.13");
  level_2("runtime-text", "/environment/runtime", "carried");
  level_2("runtime-empty", "/environment/runtime", Json::object());
  level_2("runtime-glibc", "/environment/runtime", {{"glibc", "2"}, {"kernel", "3.2.0"}});
  level_2("runtime-kernel", "/environment/runtime", {{"glibc", "2.36"}, {"kernel", "3."}});
  level_2("runtime-more", "/environment/runtime", {{"glibc", "2.36"}, {"kernel", "3.2"}, {"loader", "ld.so"}});
  level_2("driver-word", "/target/driver_floor", "newest");
  level_2("driver-empty", "/target/driver_floor", "");
  level_2("driver-dots", "/target/driver_floor", "1.2.3.4.5");
  level_2("driver-long", "/target/driver_floor", "1234567890");
  // And with level 4.
  const auto level_4 = [](const char* name, const char* where, const Json& value) {
    manifest(name, [&](Json& j) {
      j["installer_level"] = 4;
      j[Json::json_pointer(where)] = value;
    });
  };
  level_4("good-gpu-code", "/target/gpu_code", {{"a", "sm_75"}, {"torch-2.11.0", "sm_90a compute_90"}});
  level_4("good-overruled", "/target/overruled", {"driver", "gpu"});
  level_4("gpu-code-empty", "/target/gpu_code", Json::object());
  level_4("gpu-code-list", "/target/gpu_code", {"sm_75"});
  level_4("gpu-code-name", "/target/gpu_code", {{"a b", "sm_75"}});
  level_4("gpu-code-long", "/target/gpu_code", {{"a", std::string(1001, 'a')}});
  level_4("good-gpu-code-long", "/target/gpu_code", {{"a", std::string(1000, 'a')}});
  level_4("gpu-code-words", "/target/gpu_code", {{"a", "SM 75"}});
  level_4("overruled-empty", "/target/overruled", Json::array());
  level_4("overruled-unsorted", "/target/overruled", {"gpu", "driver"});
  level_4("overruled-twice", "/target/overruled", {"gpu", "gpu"});
  manifest_field("gpu-code-level-1", "/target/gpu_code", {{"a", "sm_75"}});
  manifest_field("overruled-level-1", "/target/overruled", Json::array({"gpu"}));
  manifest_field("runtime-level-1", "/environment/runtime", runtime);
  manifest_field("driver-level-1", "/target/driver_floor", "580");
  manifest_path("absolute", "/files/a");
  manifest_path("up", "files/../a");
  manifest_path("dot", "files/./a");
  manifest_path("empty-part", "files//a");
  manifest_path("slash-behind", "files/a/");
  manifest_path("empty", "");
  manifest_path("backslash", "files\\a");
  manifest_path("control", "files/a\x01");
  manifest_path("delete", "files/a\x7f");
  manifest_path("long-part", "files/" + std::string(250, '"') + "aaaaaa");
  manifest_path("good-long-part", "files/" + std::string(250, '"') + "aaaaa");
  manifest_path("drive", "C:/a");
  manifest_path("unsorted", "zz");
  manifest_path("twin", "files/b");
  manifest_path("case", "files/B");
  manifest_path("above", "files");
  manifest_path("good-latin", "files/a\u00c4\u00df\u00d7\u00f7\u00ff");
  manifest_path("good-russian", "files/a\u0410\u042f\u043f\u0440\u044f");
  manifest_path("good-japanese", "files/a\u3042\u30a2\u30fc\u6f22");
  manifest_path("good-chinese", "files/a\u4e2d\u6587\u9fa5");
  manifest_path("good-korean", "files/a\uac00\ud7a3");
  manifest_path("greek", "files/a\u03b1");
  manifest_path("composed-otherwise", "files/aa\u0308");
  two_paths("latin-case", "files/\u00c4", "files/\u00e4");
  two_paths("sharp-s", "files/ss", "files/\u00df");
  two_paths("russian-case", "files/\u0419", "files/\u0439");
  two_paths("russian-case-far", "files/\u042e", "files/\u044e");
  two_paths("good-no-case", "files/\u00d7", "files/\u00f7");
  two_paths("good-kana", "files/\u3042", "files/\u30a2");
  manifest_path("good-strange", "files/$(touch x) `y` ' {a},{[b]: * ?\"");
  manifest("path-below-not-next", [](Json& j) {  // "a", "a-b", "a/b": the last lies below the first
    for (int i = 0; i < 3; ++i)
      j["entries"][i]["path"] = j["environment"]["placements"][i]["entry"] = std::array{"a", "a-b", "a/b"}[i];
  });
  manifest("offset-overlap", [](Json& j) { j["entries"][1]["offset"] = j["entries"][0]["offset"].get<int>() + 1; });
  manifest("blob-shared-otherwise", [](Json& j) { j["entries"][1]["offset"] = j["entries"][0]["offset"]; });
  manifest("offset-within-a-gap",
           [](Json& j) { j["entries"][0]["offset"] = j["entries"][0]["offset"].get<int>() - 512; });
  manifest("stored-less", [](Json& j) {
    j["entries"][0]["stored_size"] = j["entries"][0]["size"] = j["entries"][0]["size"].get<int>() - 1;
  });
  manifest("good-blob-shared", [](Json& j) {
    j["entries"].push_back(j["entries"][0]);
    j["entries"].back()["path"] = "zz";
  });
  manifest("installed-sum", [](Json& j) {
    for (Json& e : j["entries"]) e["installed_size"] = 600'000'000'000'000u;
  });
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, Json>>{
           {"name", {{"name", "../x"}, {"sha256", std::string(64, '0')}, {"size", 1}}},
           {"size", {{"name", "x"}, {"sha256", std::string(64, '0')}, {"size", 4294967297u}}},
           {"of-the-bundle", {{"name", "tiny-7.seal"}, {"sha256", std::string(64, '0')}, {"size", 1}}},
           {"good-left-out", {{"name", "gone"}, {"sha256", std::string(64, '0')}, {"size", 1}}}})
    manifest_field(std::string("companion-") + name, "/companions", Json::array({value}));
  for (const char* what : {"good-as-signed", "changed", "longer", "link", "folder"}) {
    MadeBundle made = fresh(std::string("companion-") + what);
    made.manifest.companions = {{.name = "tool", .size = 4, .sha256 = sha256(as_bytes("tool"))}};
    reseal(made, {one_key_root(key)}, {&key});
    const std::string w = what;
    if (w == "link")
      fs::create_symlink("tiny-7.seal", made.folder / "tool");
    else if (w == "folder")
      fs::create_directory(made.folder / "tool");
    else
      write_file(made.folder / "tool", w == "changed" ? "evil" : w == "longer" ? "tool!" : "tool");
  }
}

}  // namespace sealift::test
