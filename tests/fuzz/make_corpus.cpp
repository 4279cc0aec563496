// SPDX-License-Identifier: Apache-2.0
// Writes the corpus of hostile inputs, and good ones, into DIR/<target>/: the fuzzers' seeds, and what other archivers
// are compared on. `make_corpus --rows` prints the rows of tests/HOSTILE.md that the generators cover.
#include <cstdio>
#include <set>

#include "bundle/archive/zstd.hpp"
#include "bundle/wheel/wheel_startup.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"
#include "tests/fuzz/good_texts.hpp"
#include "tests/support/hostile/hostile_elf.hpp"
#include "tests/support/hostile/hostile_gpu_code.hpp"
#include "tests/support/hostile/hostile_job.hpp"
#include "tests/support/hostile/hostile_manifest.hpp"
#include "tests/support/hostile/hostile_safetensors.hpp"
#include "tests/support/hostile/hostile_tar.hpp"
#include "tests/support/hostile/hostile_wheel.hpp"
#include "tests/support/hostile/hostile_zip.hpp"
#include "tests/support/image_trees.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_image.hpp"
#include "tests/support/tiny_patch.hpp"
#include "tests/support/tiny_root.hpp"
#include "tests/support/tiny_rpm.hpp"
#include "tests/train/data/made_token_file.hpp"

using namespace sealift;
using namespace sealift::test;

namespace {

struct Family {
  std::string target;
  HostileCases hostile;
  Good good;
};

std::string compressed(const std::string& bytes) {
  std::string out;
  const auto sink = [&out](bundle::ByteView piece) { out.append(bundle::as_text(piece)); };
  bundle::ZstdEncoder encoder(bytes.size());
  encoder.feed(bundle::as_bytes(bytes), sink);
  encoder.finish(sink);
  return out;
}

// Frames with their signed size in front, as the target wants them.
Good zstd_frames() {
  const auto sized = [](std::size_t size, const std::string& frame) {
    return std::string{static_cast<char>(size & 255), static_cast<char>(size >> 8)} + frame;
  };
  const std::string text(5000, 'z'), frame = compressed(text);
  return {{"good", sized(5000, frame)},
          {"empty", sized(0, compressed(""))},
          {"size-too-small", sized(4999, frame)},
          {"size-too-large", sized(5001, frame)},
          {"two-frames", sized(5000, frame + frame)},
          {"skippable", sized(5000, std::string("\x50\x2a\x4d\x18\x01\0\0\0x", 9) + frame)},
          {"empty-block-with-another-size", sized(0, {"\x28\xb5\x2f\xfd\x24\x80\x01\0\0\x99\xe9\xd8\x51", 13})},
          {"compressed-block-of-no-bytes", sized(0, {"\x28\xb5\x2f\xfd\x24\0\x05\0\0\x99\xe9\xd8\x51", 13})},
          {"cut", sized(5000, frame.substr(0, frame.size() - 1))}};
}

Good seals() {
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  const bundle::Seal seal{
      .roots = {one_key_root(key)},
      .manifest = signed_document(write_manifest(good_manifest()), {&key}, bundle::kBundlePayloadType)};
  return {{"good", write_seal(seal)}};
}
Good roots() {
  const bundle::PrivateKey one = bundle::PrivateKey::generate(),
                           other = bundle::PrivateKey::generate(bundle::Algorithm::Sm2);
  bundle::Root root = make_root({&one, &other}, {&one, &other}, {&other});
  root.roles["root"].threshold = 2;
  return {{"good", write_root(root)}, {"simple", one_key_root(one).payload}};
}
Good trust_states() {
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  bundle::TrustState state = pinned(one_key_root(key)).state;
  std::string fresh = write_trust_copy(state, 1);
  state.root = one_key_root(key).payload;
  return {{"fresh", std::move(fresh)}, {"known", write_trust_copy(state, 2)}};
}

Good root_chains() {
  const bundle::PrivateKey key = bundle::PrivateKey::generate();
  const bundle::Root first = make_root({&key}, {&key});
  return {{"one", write_envelope(signed_root(first, {&key}))},
          {"two", write_envelope(signed_root(first, {&key})) + write_envelope(signed_root(next_root(first), {&key}))}};
}

// A scheme, a metadata folder and a path, as the target wants them.
Good places() {
  const std::string info = std::string("demo-1.0.dist-info") + '\0';
  Good found;
  for (const char* path :
       {"lib/demo/x", "lib/libdemo.so", "bin/demo", "share/man/x", "demo/a.py", "nvidia/cu13/lib/x.so"})
    for (const char scheme : {'\0', '\1', '\3'}) found.emplace_back(std::to_string(found.size()), scheme + info + path);
  return found;
}

Good tars() {
  return {{"good-all-kinds", make_tar({{tar_folder("lib"), ""},
                                       {tar_file("lib/run", true), "hello"},
                                       {tar_link("lib/link", "run"), ""},
                                       {tar_file("lib/" + std::string(150, 'n')), std::string(600, 'b')},
                                       {tar_link("lib/far", std::string(150, 'n')), ""},
                                       {tar_file("empty"), ""}})},
          {"good-nothing", make_tar({})}};
}

Good zips() {
  return {{"good-all-kinds", make_zip({{.name = "d/", .unix_mode = 0040755},
                                       {.name = "d/x", .bytes = "hello"},
                                       {.name = "deflated", .bytes = std::string(3000, 'a'), .deflated = true},
                                       {.name = "caf\xc3\xa9", .bytes = "x", .flags = 0x800},
                                       {.name = "run", .bytes = "#!", .unix_mode = 0100755}})},
          {"good-nothing", make_zip({})},
          {"good-wheel", make_wheel({})}};
}

// The texts that the wheel target puts into a zip.
Good wheel_texts() {
  const auto joined = [](std::initializer_list<std::string> parts) {
    std::string out;
    for (const std::string& part : parts) out += part + std::string(1, '\0');
    return out;
  };
  const std::string row = "x.py,sha256=" + std::string(43, 'A') + ",1\n";
  return {{"good",
           joined({"", "Name: demo\nVersion: 1.0.0\nRequires-Python: >=3.9\n\nText\n",
                   "[console_scripts]\nrun = demo.cli:main [extra]\n", "folder\n# comment\n", "Wheel-Version: 1.0\n"})},
          {"rows", joined({row + "\"a,\"\"b\"\"\",,\n", "", "", "", ""})},
          {"points", joined({"", "", "[gui_scripts]\na = b:c\n[x]\ny\n", "", ""})},
          {"pth",
           joined({"", "", "",
                   bundle::detail::distutils_line("local") + "\n" + bundle::detail::namespace_line("a.b", true), ""})}};
}

// Lists of members and their bytes, as the patch target wants them.
Good patches() {
  const TinyPatch patch(make_patch(with_changed_library(4000), with_library(4000)));
  const auto joined = [](const std::string& lines, const std::string& bodies) {
    return lines + std::string(1, '\0') + bodies;
  };
  return {{"good", joined(patch.lines, patch.bodies)},
          {"nothing-left-out", joined("", "")},
          {"frames", joined("patch 60 900 " + std::string(64, 'a') + " 10,20,0\n", std::string(30, 'f'))},
          {"carried", joined("carried 60 900\nsame 960 64\n", std::string(900, 'c'))}};
}

Good requests() {
  return {{"list", "/simple/\napplication/vnd.pypi.simple.v1+json, text/html;q=0.1\n\n\n"},
          {"project", "/simple/demo-kit/?format=text/html\n*/*\n\n\n\"x\", W/\"y\""},
          {"redirect", "/simple/Demo.Kit\n\n\n\n"},
          {"file", "/files/" + bundle::sha256(bundle::as_bytes("Demo_Kit-1.0-py3-none-any.whl")).hex() +
                       "/Demo_Kit-1.0-py3-none-any.whl\n\nbytes=1-5\n\n"},
          {"escape", "/files/%2e%2e/%2e%2e/etc/passwd%00\n\nbytes=-1\n\n"},
          {"hub", "/org/tiny/resolve/main/sub/a%20b.json\n\nbytes=1-5\n\n\n\n"},
          {"hub-tree", "/api/models/org/tiny/tree/v1/sub?recursive=true\n\n\n\n\n\n"},
          {"hub-paths", "/api/models/org/tiny/paths-info/main\n\n\n\n\napplication/json\n{\"paths\":[\"sub\"]}"},
          {"hub-form", "/api/datasets/org/tiny/paths-info/main\n\n\n\n\n\npaths=rows.jsonl&paths=%zz"},
          {"registry", "/v2/org/app/tags/list?n=1&last=0\nrepo:8080\nzh;q=0.8, en\nhttps\n\n"},
          {"manifest", "/v2/org/app/manifests/1.0\n\n\n\n\n"},
          {"blob", "/v2/org/app/blobs/sha256:" + std::string(64, 'e') + "\n\nbytes=1-5\n\n\n"},
          {"front", "/?q=tiny+demo&lang=zh\nrepo:8080\n\nhttps\n\n"},
          {"wheels", "/wheels/requirements.txt\n\n\n\n\"x\""},
          {"entries", "/entries/tiny/files/data/a%20b\n\nbytes=1-\n\n"},
          {"scope_data", "/api/v1/datasets/Org/Rows/repo/tree?Root=%2F&PageNumber=2&PageSize=200\n\n\n\n"},
          {"absolute", "http://h/simple/torch/\n\nbytes=18446744073709551615-\n\n"}};
}

std::string profile() {
  return "pformat = 1\narch = \"x86_64\"\nglibc = \"2.28\"\nglibcxx = \"3.4.24\"\ncxxabi = \"1.3.11\"\nkernel = "
         "\"4.19\"\n"
         "python = [\"3.7\"]\ndistribution = \"kylin V10\"\ncrypto = [\"libcrypto 1.1\"]\n";
}
std::string pylock() {
  const std::string hashes = "hashes = { sha256 = \"" + std::string(64, 'a') + "\" } }";
  return "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1.0\"\nmarker = \"x\"\nwheels = [{ url = "
         "\"https://h/a-1.0-py3-none-any.whl\", size = 5, " +
         hashes + "]\nsdist = { url = \"https://h/a-1.0.tar.gz\", " + hashes +
         "\n[[packages]]\nname = \"b\"\nvcs = { type = \"git\", url = \"https://h/b\", commit-id = \"" +
         std::string(40, 'a') + "\" }\n[[packages]]\nname = \"c\"\ndirectory = { path = \"c\" }\n";
}
std::string metadata() {
  return "Metadata-Version: 2.4\nName: demo\nVersion: 1.0\nLicense-File: LICENSE\nLicense-File: NOTICE\nRequires-Dist: "
         "other (>=1) ; extra == 'x'\nDescription: one\n        |two\n\nThe rest\nName: no\n";
}

// Of the one file of good_manifest.
Good hub_catalogues() {
  const bundle::Entry entry = good_manifest().entries[0];
  const bundle::HubRepositoryFile file{.path = bundle::SafePath::parse("sub/config.json", ""),
                                       .entry = entry.path,
                                       .size = entry.size,
                                       .sha256 = entry.sha256};
  const bundle::HubRepository model{
      .name = {.id = "org/tiny"}, .commit = std::string(40, 'c'), .revisions = {"main"}, .files = {file}};
  const bundle::HubRepository scope{
      .name = {.hub = bundle::HubKind::ModelScope, .id = "tiny"}, .commit = "master", .revisions = {}, .files = {file}};
  return {{"good", bundle::write_hub_catalogue({model})}, {"two", bundle::write_hub_catalogue({model, scope})}};
}

// Small ones, since a fuzzer's inputs are: blocks, a shared one, zeros, a link.
Good squashfs_images() {
  const TempDir dir;
  write_image_of({}, dir / "empty");
  write_image_of({.paths = {{"bin/", ""},
                            {"bin/tool", "#!/bin/sh\n"},
                            {"bin/alias", ">tool"},
                            {"lib/", ""},
                            {"lib/blocks", std::string(150'000, 'b')},
                            {"lib/small", noise(300, 2)},
                            {"lib/zeros", std::string(140'000, '\0')}},
                  .executable = "bin/tool"},
                 dir / "tree");
  return {{"empty", read_file(dir / "empty")}, {"tree", read_file(dir / "tree")}};
}

Good image_catalogues() {
  const TinyImage other{.tag = "2", .docker = true};
  return {{"good", bundle::write_image_catalogue({listed_image({})})},
          {"two", bundle::write_image_catalogue({listed_image({}), listed_image(other)})}};
}

Good tomls() {
  return {{"good-job", "j" + good_job()},
          {"good-lock", "l" + good_lock()},
          {"good-profile", profile()},
          {"good-golden", "g" + golden_text()}};
}

std::string item_record() {
  return R"({"content":")" + std::string(64, 'a') +
         R"(","dist_info":"demo-1.0.dist-info","files":[{"executable":true,)" + R"("path":"bin/demo","sha256":")" +
         std::string(64, 'b') + R"(","size":3}],"folders":["bin"],"format":2,)" +
         R"("kind":"wheel","links":[{"path":"bin/other","target":"demo"}],"name":"demo.whl"})" + "\n";
}

std::vector<Family> families() {
  HostileCases jobs = hostile_jobs();
  for (HostileCase& job : jobs) job.bytes = "j" + job.bytes;
  return {{"manifest",
           hostile_manifests(),
           {{"good", write_manifest(good_manifest())},
            {"good-delta", write_manifest(good_delta())},
            {"good-patch", write_manifest(good_patch())},
            {"good-image", write_manifest(good_image())},
            {"good-image-alone", write_manifest(good_image_alone())},
            {"good-recovery", write_manifest(good_recovery())}}},
          {"inventory",
           {},
           {{"good", bundle::write_inventory({.generations = {{.name = "env", .channel = "prod", .version = 3}},
                                              .items = {std::string(64, 'a'), std::string(64, 'b') + "-tree"}})}}},
          {"hub_catalogue", {}, hub_catalogues()},
          {"image_catalogue", {}, image_catalogues()},
          {"rpm_header", {}, {{"good", tiny_rpm()}}},
          {"seal", {}, seals()},
          {"root", {}, roots()},
          {"root_chain", {}, root_chains()},
          {"places", {}, places()},
          {"trust", {}, trust_states()},
          {"tar", hostile_tars(), tars()},
          {"zip", hostile_zips(), zips()},
          {"wheel", {}, wheel_texts()},
          {"patch", {}, patches()},
          {"wheel-file", hostile_wheels(), {{"good", make_wheel({})}}},
          {"elf", hostile_elfs(), {{"good", make_elf()}}},
          {"gpu_code",
           hostile_gpu_code(),
           {{"good",
             elf_with_gpu_code(fat_binary({"sm_80", "sm_90a", "sm_100f", "compute_120"}) + fat_binary({"sm_75"}))}}},
          {"safetensors",
           hostile_safetensors(),
           {{"good",
             safetensors_of("{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],"
                            "\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}}",
                            8)}}},
          {"toml", jobs, tomls()},
          {"site_files", {}, site_files()},
          {"item_record", {}, {{"good", item_record()}}},
          {"git_login", {}, git_logins()},
          {"image_layout", {}, image_layouts()},
          {"squashfs", {}, squashfs_images()},
          {"pylock", {}, {{"good", pylock()}}},
          {"metadata", {}, {{"good", metadata()}}},
          {"yaml",
           {},
           {{"card", "license: other\nlicense_name: 'x'\ntags:\n- a\n- {b: [c, \"d\\n\"]}\n"},
            {"job", "model: &m Qwen\nagain: *m\nnote: |\n  two\n  lines\nlist: [1, no, ~, 1e5]\n"}}},
          {"http", {}, requests()},
          {"zstd", {}, zstd_frames()},
          {"token_file", {}, {{"chats", made_chats().bytes()}, {"preferences", made_preferences().bytes()}}}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIR | --rows\n");
    return 2;
  }
  const std::string where = argv[1];
  std::set<std::string> rows;
  for (const Family& family : families()) {
    const std::filesystem::path folder = std::filesystem::path(where) / family.target;
    for (const HostileCase& hostile : family.hostile) {
      rows.insert(hostile.row);
      if (where != "--rows") write_file(folder / (hostile.row + "-" + hostile.name), hostile.bytes);
    }
    for (const auto& [name, bytes] : family.good)
      if (where != "--rows") write_file(folder / name, bytes);
  }
  if (where == "--rows")
    for (const std::string& row : rows) std::printf("%s\n", row.c_str());
  return 0;
}
