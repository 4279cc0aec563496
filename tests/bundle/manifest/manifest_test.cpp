// SPDX-License-Identifier: Apache-2.0
// The manifest round-trips exactly, and each rule of FORMAT.md has a manifest that breaks only that rule.
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/manifest/variables.hpp"

#include "tests/support/hostile/hostile_manifest.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

Manifest sample() {
  Manifest manifest = sealift::test::good_manifest();
  manifest.environment.imports.push_back("torch.distributed");
  return manifest;
}

}  // namespace

TEST_CASE("a manifest reads back as it was written, and writes the same bytes again") {
  const std::string text = write_manifest(sample());
  CHECK(parse_manifest(text, "seal") == sample());
  CHECK(write_manifest(parse_manifest(text, "seal")) == text);
}

TEST_CASE("a manifest that breaks one rule is refused for that rule") {
  struct Case {
    const char* name;
    const char* pointer;
    Json value;
    ErrorCode code;
    const char* reason;
  };
  const Case cases[] = {
      {"newer format", "/format", 3, ErrorCode::CannotCheck, "use the sealift-install that came with the bundle"},
      {"the first format", "/format", 1, ErrorCode::CannotCheck, "format 1, which this version does not read"},
      {"newer installer", "/installer_level", 99, ErrorCode::CannotCheck, "newer installer"},
      {"unknown kind", "/entries/0/kind", "firmware", ErrorCode::CannotCheck, "firmware"},
      {"unknown encoding", "/entries/0/encoding", "brotli", ErrorCode::CannotCheck, "brotli"},
      {"weak chunk digest", "/payload/digest", "md5", ErrorCode::CannotCheck, "md5"},
      {"another weak chunk digest", "/payload/digest", "sha1", ErrorCode::CannotCheck, "sha1"},
      {"longer chunk digest", "/payload/digest", "sha512", ErrorCode::CannotCheck, "sha512"},
      {"chunk digest spelled otherwise", "/payload/digest", "SHA256", ErrorCode::CannotCheck, "SHA256"},
      {"chunk digest without a name", "/payload/digest", "", ErrorCode::CannotCheck, "sha256 or sm3"},
      {"chunk digest by number", "/payload/digest", 1, ErrorCode::Format, "digest"},
      {"unknown key", "/surprise", 1, ErrorCode::Format, "surprise"},
      {"unknown key in an entry", "/entries/0/surprise", 1, ErrorCode::Format, "surprise"},
      {"name with a slash", "/name", "../env", ErrorCode::Format, "plain name"},
      {"empty name", "/name", "", ErrorCode::Format, "plain name"},
      {"path that escapes", "/entries/0/path", "../../etc/cron.d/x", ErrorCode::Format, "not safe"},
      {"entries out of order", "/entries/0/path", "zzz", ErrorCode::Format, "sorted"},
      {"the same path twice", "/entries/0/path", "wheels/a-1-py3-none-any.whl", ErrorCode::Format, "sorted"},
      {"entry outside the payload", "/entries/0/offset", 10001, ErrorCode::Format, "offset"},
      {"entry over the payload's end", "/entries/0/stored_size", 9489, ErrorCode::Format, "stored_size"},
      {"entries that overlap", "/entries/1/offset", 1500, ErrorCode::Format, "overlap"},
      {"one blob with two digests", "/entries/1/offset", 512, ErrorCode::Format, "overlap"},
      {"identity with two sizes", "/entries/1/size", 101, ErrorCode::Format, "equal sizes"},
      {"short digest", "/entries/0/sha256", "abcd", ErrorCode::Format, "SHA-256"},
      {"upper-case digest", "/entries/0/sha256", std::string(64, 'A'), ErrorCode::Format, "SHA-256"},
      {"chunk size of 3", "/payload/chunk_size", 3, ErrorCode::Format, "power of two"},
      {"chunk size of 0", "/payload/chunk_size", 0, ErrorCode::Format, "power of two"},
      {"chunk size too large", "/payload/chunk_size", 1 << 25, ErrorCode::Format, "chunk_size"},
      {"more chunks than are read", "/payload/size", 1LL << 34, ErrorCode::Format, "larger chunk_size"},
      {"huge payload", "/payload/size", 1LL << 52, ErrorCode::Format, "payload.size"},
      {"payload longer than its volumes", "/payload/size", 10001, ErrorCode::Format, "whole chunks"},
      {"volumes longer than the payload", "/payload/size", 9999, ErrorCode::Format, "hold more than the payload"},
      {"volume of half a chunk", "/payload/volumes/0/size", 6243, ErrorCode::Format, "whole chunks"},
      {"volume with another name", "/payload/volumes/1/name", "../evil.vol002", ErrorCode::Format, "in order"},
      {"no volumes", "/payload/volumes", Json::array(), ErrorCode::Format, "add up"},
      {"placement of nothing", "/environment/placements/0/entry", "nothing", ErrorCode::Format, "not there"},
      {"placement that escapes", "/environment/placements/0/into", "../x", ErrorCode::Format, "not safe"},
      {"file without a place", "/environment/placements/0/into", "", ErrorCode::Format, "needs a place"},
      {"wheel with a place", "/environment/placements/1/into", "x", ErrorCode::Format, "needs a place"},
      {"import that is code", "/environment/imports/0", "os;import evil", ErrorCode::Format, "module name"},
      {"interpreter that escapes", "/environment/interpreter", "/bin/sh", ErrorCode::Format, "not safe"},
      {"companion that escapes", "/companions/0/name", "../x", ErrorCode::Format, "plain name"},
      {"glibc that is no version", "/target/glibc", "latest", ErrorCode::Format, "2.36"},
      {"negative version", "/version", -1, ErrorCode::Format, "version"},
      {"text for a number", "/version", "3", ErrorCode::Format, "version"},
  };
  const Json good = Json::parse(write_manifest(sample()));
  for (const Case& wrong : cases) {
    CAPTURE(std::string(wrong.name));
    Json json = good;
    json[Json::json_pointer(wrong.pointer)] = wrong.value;
    const Error error = sealift::test::refusal([&] { parse_manifest(write_json(json), "the-seal"); });
    INFO(error.what());
    CHECK(error.code() == wrong.code);
    CHECK(sealift::test::mentions(error, wrong.reason));
    CHECK(sealift::test::mentions(error, "the-seal"));
  }
}

TEST_CASE("a carried runtime and a driver floor are said where they are, and raise the level of their bundles only") {
  Manifest manifest = sample();
  CHECK(manifest.installer_level == 1);
  CHECK(needed_installer_level(manifest) == 0);
  SUBCASE("a runtime") {
    manifest.environment.runtime = {.glibc = {2, 36}, .kernel = "3.2.0"};
  }
  SUBCASE("a driver floor") {
    manifest.driver_floor = "525.60.13";
  }
  CHECK(needed_installer_level(manifest) == 2);
  CHECK_REFUSED(parse_manifest(write_manifest(manifest), "seal"), Format, "installers below level 2");
  manifest.installer_level = 2;
  const std::string text = write_manifest(manifest);
  CHECK(parse_manifest(text, "seal") == manifest);
  CHECK(write_manifest(parse_manifest(text, "seal")) == text);
}

TEST_CASE("a runtime or a driver floor that breaks one rule is refused for that rule") {
  Json good = Json::parse(write_manifest(sample()));
  good["installer_level"] = 2;
  const auto refused = [&](const std::string& pointer, const Json& value, const std::string& reason) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    CAPTURE(value.dump());
    CHECK_REFUSED(parse_manifest(write_json(json), "seal"), Format, reason);
  };
  refused("/environment/runtime", "carried", "an object was expected");
  refused("/environment/runtime", {{"glibc", "2.36"}}, "'kernel' is missing");
  refused("/environment/runtime", {{"kernel", "3.2.0"}}, "'glibc' is missing");
  refused("/environment/runtime", {{"glibc", "2"}, {"kernel", "3.2.0"}}, "2.36");
  refused("/environment/runtime", {{"glibc", "2.36"}, {"kernel", "3.2.0"}, {"loader", "ld.so"}}, "loader");
  for (const char* version : {"", ".", "580.", ".580", "5..80", "newest", "1.2.3.4.5", "1234567890", "-1", "580 "}) {
    refused("/target/driver_floor", version, "525.60.13");
    refused("/environment/runtime", {{"glibc", "2.36"}, {"kernel", version}}, "525.60.13");
  }
}

TEST_CASE("how a wheel was built is said of each, raises the level, and a manifest that says nothing stays readable") {
  Manifest manifest = sealift::test::good_manifest();
  const std::string before = write_manifest(manifest);
  CHECK(before.find("built") == std::string::npos);
  CHECK(wheels_built(parse_manifest(before, "seal"), WheelBuild::None).size() == 1);
  CHECK(wheels_built(manifest, WheelBuild::Unsandboxed).empty());
  for (const WheelBuild build : {WheelBuild::Sandboxed, WheelBuild::Unsandboxed}) {
    manifest.entries[1].build = build;
    CHECK(needed_installer_level(manifest) == 6);
    manifest.installer_level = 5;
    CHECK_REFUSED(parse_manifest(write_manifest(manifest), "seal"), Format, "installers below level 6");
    manifest.installer_level = 6;
    const std::string text = write_manifest(manifest);
    CHECK(text.find("\"built\":\"" + name_of(build) + "\",\"encoding\"") != std::string::npos);
    CHECK(parse_manifest(text, "seal") == manifest);
    CHECK(wheels_built(manifest, build) == std::vector<std::string>{"a-1-py3-none-any.whl"});
  }
  CHECK(few_of({}) == "none");
  CHECK(few_of({"a", "b"}) == "a, b");
  CHECK(few_of({"a", "b", "c", "d", "e", "f", "g"}) == "a, b, c, d, e and 2 more");
}

TEST_CASE("code for GPUs and overruled checks are kept, and a fault in them is refused") {
  Manifest manifest = sample();
  manifest.gpu_code = {{"torch-2.11.0", "sm_75 sm_90a compute_120"}};
  CHECK(needed_installer_level(manifest) == 4);
  manifest.gpu_code.clear();
  manifest.overruled = {"driver", "gpu"};
  CHECK(needed_installer_level(manifest) == 4);
  manifest.gpu_code = {{"torch-2.11.0", "sm_75 sm_90a compute_120"}, {"triton-3", "sm_130x_of_the_future"}};
  CHECK_REFUSED(parse_manifest(write_manifest(manifest), "seal"), Format, "installers below level 4");
  manifest.installer_level = 4;
  CHECK(parse_manifest(write_manifest(manifest), "seal") == manifest);
  const Json good = Json::parse(write_manifest(manifest));
  const auto refused = [&](const std::string& pointer, const Json& value, const std::string& reason) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    CAPTURE(value.dump());
    CHECK_REFUSED(parse_manifest(write_json(json), "seal"), Format, reason);
  };
  refused("/target/gpu_code", Json::object(), "leave the key out");
  refused("/target/gpu_code", Json::array(), "components and what");
  refused("/target/gpu_code", {{"a b", "sm_75"}}, "a component and words");
  for (const Json& images : {Json(""), Json("SM_75"), Json(75), Json("sm_75\n"), Json(std::string(1001, 'a'))})
    refused("/target/gpu_code/torch-2.11.0", images, "a component and words");
  refused("/target/overruled", Json::array(), "leave the key out");
  refused("/target/overruled", {"gpu", "driver"}, "sorted and unique");
  refused("/target/overruled", {"gpu", "gpu"}, "sorted and unique");
  refused("/target/overruled", Json::array({"a b"}), "the name of a check");
}

TEST_CASE("an image is said with its root hash, raises the level, and a fault in what is said of it is refused") {
  const Manifest manifest = sealift::test::good_image();
  CHECK(needed_installer_level(manifest) == 8);
  const std::string text = write_manifest(manifest);
  CHECK(parse_manifest(text, "seal") == manifest);
  CHECK(write_manifest(parse_manifest(text, "seal")) == text);
  REQUIRE(manifest.image() != nullptr);
  CHECK(manifest.image()->path.text() == "environment/image.sqfs");
  CHECK(sample().image() == nullptr);
  const Json good = Json::parse(text);
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& reason) {
    Json json = good;
    change(json);
    CAPTURE(json.dump());
    CHECK_REFUSED(parse_manifest(write_json(json), "seal"), Format, reason);
  };
  const auto of_image = [&](const std::string& key, const Json& value, const std::string& reason) {
    refused([&](Json& json) { json["entries"][0][key] = value; }, reason);
  };
  of_image("verity", "00", "SHA-256");
  of_image("verity", 1, "verity");
  of_image("path", "../image.sqfs", "not safe");
  of_image("path", "/image.sqfs", "not safe");
  of_image("path", "", "not safe");
  of_image("encoding", "zstd", "carried as it is");
  of_image("installed_size", 4096, "not installed");
  of_image("installed_files", 1, "not installed");
  of_image("executable", true, "not installed");
  of_image("size", 8192, "equal sizes");
  for (const int size : {0, 4095})
    refused([&](Json& json) { json["entries"][0]["size"] = json["entries"][0]["stored_size"] = size; },
            "whole blocks of 4096");
  refused([](Json& json) { json["entries"][0].erase("verity"); }, "root hash for dm-verity");
  refused([](Json& json) { json["entries"][1]["verity"] = std::string(64, '0'); }, "root hash for dm-verity");
  refused([](Json& json) { json["installer_level"] = 7; }, "installers below level 8");
  refused(
      [](Json& json) {
        json["entries"].push_back(json["entries"][0]);
        json["entries"].back()["path"] = "zz";
      },
      "one image of its environment");
  refused(
      [](Json& json) {
        json["environment"]["placements"].push_back({{"entry", "environment/image.sqfs"}, {"into", "image"}});
      },
      "mounted, and not placed");
  refused(
      [](Json& json) {
        Json& image = json["entries"][0];
        for (const char* key : {"encoding", "offset", "stored_size", "stored_sha256"}) image.erase(key);
        image["absent"] = true;
        image["content"] = std::string(64, '0');
        json["base"] = std::string(64, '0');
      },
      "carried as it is");
}

TEST_CASE("what an image was made of may be absent without a base, where it is placed") {
  Json good = Json::parse(write_manifest(sealift::test::good_image()));
  const auto leave_out = [](Json& json, std::size_t index) {
    Json& entry = json["entries"][index];
    for (const char* key : {"encoding", "offset", "stored_size", "stored_sha256"}) entry.erase(key);
    entry["absent"] = true;
    entry["content"] = std::string(64, '0');
  };
  CHECK(!carries_image_alone(parse_manifest(write_json(good), "seal")));
  leave_out(good, 1);
  leave_out(good, 2);
  good["payload"]["volumes"][0]["size"] = 4096;
  const Manifest manifest = parse_manifest(write_json(good), "seal");
  CHECK(carries_image_alone(manifest));
  CHECK(write_manifest(manifest) == write_json(good));
  const auto refused = [&](const std::function<void(Json&)>& change, const std::string& reason) {
    Json json = good;
    change(json);
    CHECK_REFUSED(parse_manifest(write_json(json), "seal"), Format, reason);
  };
  refused([](Json& json) { json["environment"]["placements"].erase(1); }, "names its base");
  refused([](Json& json) { json["entries"].erase(0); }, "names its base");
  refused([](Json& json) { json["entries"][1]["content"] = "abcd"; }, "SHA-256");
  Json delta = good;
  delta["base"] = std::string(64, 'a');
  CHECK(!carries_image_alone(parse_manifest(write_json(delta), "seal")));
}

TEST_CASE("a manifest has one spelling") {
  const std::string text = write_manifest(sample());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    CAPTURE(to);
    CHECK(Json::parse(other) == Json::parse(text));
    CHECK_REFUSED(parse_manifest(other, "seal"), Format, "not spelled as it was written");
  };
  refused("{\"", "{ \"");
  refused("\"created\"", "\"cre\\u0061ted\"");
  refused("}", "}\n");
  CHECK_REFUSED(parse_manifest(text + "\n", "seal"), Format, "not spelled as it was written");
}

TEST_CASE("every key of a manifest is needed") {
  const Json good = Json::parse(write_manifest(sample()));
  const auto without = [&](const std::string& pointer) {
    const Json::json_pointer full(pointer);
    Json json = good;
    json[full.parent_pointer()].erase(full.back());
    CAPTURE(pointer);
    CHECK_REFUSED(parse_manifest(write_json(json), "seal"), Format, "'" + full.back() + "' is missing");
  };
  for (const auto& item : good.items()) without("/" + item.key());
  for (const auto& item : good["payload"].items()) without("/payload/" + item.key());
  for (const auto& item : good["entries"][0].items()) without("/entries/0/" + item.key());
  for (const auto& item : good["environment"].items()) without("/environment/" + item.key());
  for (const auto& item : good["target"].items()) without("/target/" + item.key());
}

TEST_CASE("an entry may not lie below another") {
  Manifest manifest = sample();
  manifest.entries[0].path = SafePath::parse("wheels", "");
  manifest.environment.placements.erase(manifest.environment.placements.begin());
  CHECK_REFUSED(parse_manifest(write_manifest(manifest), "seal"), Format, "below another");
}

TEST_CASE("equal bytes may be stored once for two entries") {
  Manifest manifest = sample();
  Entry twin = manifest.entries[1];
  twin.path = SafePath::parse("wheels/b-1-py3-none-any.whl", "");
  manifest.entries.push_back(twin);
  CHECK(parse_manifest(write_manifest(manifest), "seal").entries.size() == 3);
}

TEST_CASE("entries are found by path") {
  const Manifest manifest = sample();
  REQUIRE(manifest.find(SafePath::parse("programs/tool", "")) != nullptr);
  CHECK(manifest.find(SafePath::parse("programs/tool", ""))->executable);
  CHECK(manifest.find(SafePath::parse("programs/toolx", "")) == nullptr);
}

TEST_CASE("an environment's variables are lines that read back as they were written, and nothing else is read") {
  const Variables variables = {{"HF_HUB_OFFLINE", "1"},
                               {"NLTK_DATA", "${PREFIX}/data/nltk=x y"},
                               {"TRITON_CACHE_DIR", "${CACHE}/triton"},
                               {"WANDB_MODE", ""}};
  const std::string text = write_variables(variables);
  CHECK(text.starts_with("HF_HUB_OFFLINE=1\nNLTK_DATA=${PREFIX}/data/nltk=x y\n"));
  CHECK(parse_variables(text, "file") == variables);
  CHECK(parse_variables("", "file").empty());
  for (const std::string bad :
       {"HF_A=1", "HF_A\n", "=1\n", "1A=1\n", "HF_A B=1\n", "HF_B=1\nHF_A=1\n", "HF_A=1\nHF_A=2\n", "HF_A=${HOME}\n",
        "HF_A=1\r\n", "HF_A=\xff\n", "PATH=/x\n", "LD_PRELOAD=x\n", "PYTHONPATH=x\n", "HF_A=1\n\n"}) {
    CAPTURE(bad);
    CHECK_REFUSED(parse_variables(bad, "file"), Format, "file");
  }
  CHECK_REFUSED(parse_variables("HF_A=" + std::string(301, 'x') + "\n", "file"), Format, "longer than 300");
  std::string many;
  for (int i = 100; i < 301; ++i) many += "HF_A" + std::to_string(i) + "=\n";
  CHECK_REFUSED(parse_variables(many, "file"), Format, "more than 200");
  CHECK(fault_of_variable("A", "${PREFIX}${CACHE} $HOME $5") == nullptr);
}

TEST_CASE("a bundle sets the variables that packages for training read and a site's own, and no others") {
  for (const char* name : {"HF_HUB_OFFLINE", "NLTK_DATA", "TRITON_CACHE_DIR", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS",
                           "CC", "CUDA_DEVICE_ORDER", "USE_MODELSCOPE_HUB", "SITE_PROXY_NAME"}) {
    CAPTURE(name);
    CHECK(fault_of_carried_variable(name, "1") == nullptr);
    CHECK_NOTHROW(parse_variables(name + std::string("=1\n"), "file"));
  }
  for (const char* name : {"GCONV_PATH",
                           "OPENSSL_MODULES",
                           "OPENSSL_CONF",
                           "http_proxy",
                           "HTTPS_PROXY",
                           "ALL_PROXY",
                           "PIP_INDEX_URL",
                           "UV_DEFAULT_INDEX",
                           "SSL_CERT_FILE",
                           "CUDA_INJECTION64_PATH",
                           "CUDA_INJECTION32_PATH",
                           "OMP_TOOL_LIBRARIES",
                           "HSA_TOOLS_LIB",
                           "UCX_MODULE_DIR",
                           "LOCPATH",
                           "NLSPATH",
                           "GIT_SSH_COMMAND",
                           "NODE_OPTIONS",
                           "PERL5LIB",
                           "BASH_FUNC_x",
                           "MALLOC_TRACE",
                           "RESOLV_HOST_CONF",
                           "TERMINFO",
                           "HF_",
                           "hf_home",
                           "EDITOR",
                           "NVTX_INJECTION64_PATH",
                           "A"}) {
    CAPTURE(name);
    CHECK(fault_of_carried_variable(name, "1") != nullptr);
    CHECK_REFUSED(parse_variables(name + std::string("=1\n"), "file"), Format, "file");
  }
}
