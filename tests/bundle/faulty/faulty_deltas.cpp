// SPDX-License-Identifier: Apache-2.0
// Deltas, patches and what else a manifest may say of an entry, each good and with one fault.
#include "tests/bundle/faulty/faulty_bundles.hpp"

namespace sealift::test {

void deltas() {
  const auto made = [](const std::string& name, const std::function<void(TinyBundle&)>& change,
                       const std::function<void(Json&)>& fault) {
    TinyBundle start = tiny();
    change(start);
    const MadeBundle bundle = fresh(name, start);
    Json json = parse_json(write_manifest(bundle.manifest), "");
    fault(json);
    seal_bytes(bundle, json.dump());
  };
  const auto nothing = [](Json&) {};
  const auto absent = [](TinyBundle& b) { b.items[1].absent = true; };  // files/"a", the first entry
  made("good-delta", absent, nothing);
  made(
      "good-delta-of-all",
      [](TinyBundle& b) {
        for (TinyItem& item : b.items) item.absent = true;
      },
      nothing);
  made("delta-offset", absent, [](Json& j) { j["entries"][0]["offset"] = 512; });
  made("delta-stored", absent, [](Json& j) { j["entries"][0]["stored_size"] = 5000; });
  made("delta-encoding", absent, [](Json& j) { j["entries"][0]["encoding"] = "identity"; });
  made("delta-false", absent, [](Json& j) { j["entries"][0]["absent"] = false; });
  made("delta-neither", absent, [](Json& j) { j["entries"][0].erase("absent"); });
  made("delta-no-content", absent, [](Json& j) { j["entries"][0].erase("content"); });
  made("delta-content-bad", absent, [](Json& j) { j["entries"][0]["content"] = "x"; });
  made("content-carried", absent, [](Json& j) { j["entries"][1]["content"] = std::string(64, '0'); });
  made("delta-no-base", absent, [](Json& j) { j.erase("base"); });
  made("delta-base-bad", absent, [](Json& j) { j["base"] = "x"; });
  made("delta-level", absent, [](Json& j) { j["installer_level"] = 1; });
  const auto patch = [](TinyBundle& b) {  // of the wheel, the last entry; nobody here looks into it
    b.items[0].encoding = Encoding::Patch, b.items[0].patch = std::string(5000, 'p');
    b.items[0].built_on = sha256(as_bytes("an older wheel"));
  };
  made("good-patch", patch, nothing);
  made("patch-no-content", patch, [](Json& j) { j["entries"].back().erase("base"); });
  made("patch-content-bad", patch, [](Json& j) { j["entries"].back()["base"] = "x"; });
  made("patch-of-nothing", patch, [](Json& j) { j["entries"].back()["encoding"] = "zstd"; });
  made("patch-of-a-file", patch,
       [](Json& j) { j["entries"][0]["encoding"] = "patch", j["entries"][0]["base"] = std::string(64, '0'); });
  made("patch-no-base", patch, [](Json& j) { j.erase("base"); });
  made("patch-level", patch, [](Json& j) { j["installer_level"] = 4; });
  made("patch-absent", patch, [](Json& j) { j["entries"].back()["absent"] = true; });
  const auto built = [](TinyBundle& b) { b.items[0].build = WheelBuild::Unsandboxed; };
  const auto word = [](const Json& value) { return [value](Json& j) { j["entries"].back()["built"] = value; }; };
  made("good-unsandboxed", built, nothing);
  made("good-sandboxed", built, word("sandboxed"));
  made(
      "good-built-and-absent", [&](TinyBundle& b) { absent(b), built(b); }, nothing);
  made(
      "good-built-patch", [&](TinyBundle& b) { patch(b), built(b); }, nothing);
  made("built-unknown", built, word("elsewhere"));
  made("built-number", built, word(1));
  made("built-level", built, [](Json& j) { j["installer_level"] = 5; });
  made("built-file", built, [](Json& j) { j["entries"][0]["built"] = "sandboxed"; });
  made("delta-kind", absent, [](Json& j) { j["entries"][0]["kind"] = "sparse"; });
  made(
      "base-alone", [](TinyBundle&) {}, [](Json& j) { j["base"] = std::string(64, '0'), j["installer_level"] = 2; });
  const auto out = [](TinyBundle& b) { b.items[0].left_out = {"bin/x", "lib/y \"z\""}; };  // of the wheel, placement 2
  const auto list = [](const Json& value) {
    return [value](Json& j) { j["environment"]["placements"][2]["left_out"] = value; };
  };
  made("good-left-out", out, nothing);
  made("left-out-level", out, [](Json& j) { j["installer_level"] = 1; });
  made("left-out-none", out, list(Json::array()));
  made("left-out-twice", out, list(Json::array({"bin/x", "bin/x"})));
  made("left-out-unsorted", out, list(Json::array({"b", "a"})));
  made("left-out-up", out, list(Json::array({"../x"})));
  made("left-out-number", out, list(Json::array({1})));
  const auto starts = [](TinyBundle& b) { b.startup_files = {sha256(as_bytes("b")), sha256(as_bytes("a"))}; };
  const auto startup = [](const Json& value) { return [value](Json& j) { j["environment"]["startup"] = value; }; };
  const std::string low(64, '0'), high(64, 'f');
  made(
      "good-startup", [](TinyBundle& b) { b.startup_files = {sha256(as_bytes("a"))}; }, nothing);
  made("good-startup-of-two", starts, startup(Json::array({low, high})));
  made("startup-level", starts, [](Json& j) {
    j["installer_level"] = 2;
    j["environment"]["startup"] = Json::array({std::string(64, '0')});
  });
  made("startup-none", starts, startup(Json::array()));
  made("startup-twice", starts, startup(Json::array({low, low})));
  made("startup-unsorted", starts, startup(Json::array({high, low})));
  made("startup-number", starts, startup(Json::array({1})));
  made("startup-name", starts, startup(Json::array({"a.pth"})));
  const auto image = [](TinyBundle& b) {
    b.items.push_back({.path = "environment/image.sqfs",
                       .kind = EntryKind::Squashfs,
                       .bytes = std::string(8192, 'i'),
                       .placed = false,
                       .verity = sha256(as_bytes("its tree"))});
  };
  const auto of_image = [](const std::string& key, const Json& value) {  // the first entry
    return [key, value](Json& j) { j["entries"][0][key] = value; };
  };
  made("good-image", image, nothing);
  made("image-level", image, [](Json& j) { j["installer_level"] = 7; });
  made("image-root-short", image, of_image("verity", "00"));
  made("image-root-none", image, [](Json& j) { j["entries"][0].erase("verity"); });
  made("image-root-of-another", image, [](Json& j) { j["entries"][1]["verity"] = std::string(64, '0'); });
  made("image-root-next-door", image, [](Json& j) {
    j["entries"][0].erase("verity");
    j["entries"][1]["verity"] = std::string(64, '0');
  });
  made("image-installed-size", image, of_image("installed_size", 4096));
  made("image-installed-files", image, of_image("installed_files", 1));
  made("image-executable", image, of_image("executable", true));
  made("image-zstd", image, of_image("encoding", "zstd"));
  made("image-path-up", image, of_image("path", "../image.sqfs"));
  made("image-twice", image, [](Json& j) {
    j["entries"].push_back(j["entries"][0]);
    j["entries"].back()["path"] = "zz";
  });
  made("image-placed", image, [](Json& j) {
    j["environment"]["placements"].push_back({{"entry", "environment/image.sqfs"}, {"into", "image"}});
  });
  const auto sized = [](int size) {
    return [size](Json& j) { j["entries"][0]["size"] = j["entries"][0]["stored_size"] = size; };
  };
  made("image-in-part-blocks", image, sized(8191));
  made("image-empty", image, sized(0));
  made("image-absent", image, [](Json& j) {
    Json& entry = j["entries"][0];
    for (const char* key : {"encoding", "offset", "stored_size", "stored_sha256"}) entry.erase(key);
    entry["absent"] = true;
    entry["content"] = j["base"] = std::string(64, '0');
  });
  const auto alone = [&](TinyBundle& b) {
    for (TinyItem& item : b.items) item.absent = true;
    image(b);
  };
  made("good-image-alone", alone, [](Json& j) { j.erase("base"); });
  made("good-image-of-a-delta", alone, nothing);
  made("image-alone-unplaced", alone, [](Json& j) {
    j.erase("base");
    j["environment"]["placements"].erase(0);
  });
  made(
      "image-alone-and-patch", [&](TinyBundle& b) { patch(b), image(b); }, [](Json& j) { j.erase("base"); });
  made("root-without-image", absent, [](Json& j) { j["entries"][1]["verity"] = std::string(64, '0'); });
  made("left-out-of-file", out, [](Json& j) { j["environment"]["placements"][0]["left_out"] = Json::array({"a"}); });
}

}  // namespace sealift::test
