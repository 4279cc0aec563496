// SPDX-License-Identifier: Apache-2.0
// The real program and the hub's real client: what it downloads, what it finds in its cache, what it says is missing.
#include <cstdlib>

#include "tests/offline_repo/authority.hpp"
#include "tests/offline_repo/hub_bundle.hpp"
#include "tests/offline_repo/hub_pythons.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/offline_repo/token_file.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

const std::map<std::string, std::string>& tiny_files() {
  static const std::map<std::string, std::string> files = {
      {"config.json", R"({"model_type":"gpt2","vocab_size":3,"n_embd":8,"n_head":2,"n_layer":1})"},
      {"tokenizer.json",
       R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,)"
       R"("pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,)"
       R"("model":{"type":"WordLevel","vocab":{"[UNK]":0,"hello":1,"world":2},"unk_token":"[UNK]"}})"},
      {"tokenizer_config.json", R"({"tokenizer_class":"PreTrainedTokenizerFast","unk_token":"[UNK]"})"},
      {"sub/weights.safetensors", noise(3'000'000)},
      {"empty.txt", ""}};
  return files;
}

std::map<std::string, std::string> many_rows() {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 420; ++i) files["part/" + std::to_string(i) + ".txt"] = "row " + std::to_string(i) + "\n";
  return files;
}

std::vector<TinyRepository> repositories() {
  return {{.name = {HubKind::ModelScope, RepositoryKind::Dataset, "Org/Rows"},
           .commit = "master",
           .revisions = {},
           .files = many_rows()},
          {.name = {HubKind::ModelScope, RepositoryKind::Dataset, "Org/Text"},
           .commit = "master",
           .revisions = {},
           .files = {{"README.md", "# Text\n"}, {"extra/notes.txt", "\n"}, {"train.jsonl", "{\"text\": \"hello\"}\n"}}},
          {.name = {.id = "org/tiny"}, .files = tiny_files()},
          {.name = {.hub = HubKind::ModelScope, .id = "Org/Tiny"},
           .commit = "master",
           .revisions = {},
           .files = tiny_files()},
          {.name = {.kind = RepositoryKind::Dataset, .id = "org/rows"},
           .files = {{"rows.jsonl", "{\"text\": \"hello\"}\n"}}}};
}

// A server over a bundle of them, and a client with a cache of its own, and with a token where the server wants one.
struct HubSite {
  explicit HubSite(bool wants_token) {
    std::vector<std::string> command = serve({made.folder, "--fingerprint", made.fingerprint()});
    write_tokens(dir / "tokens", token_line("reader", "hf_secret"));
    if (wants_token) command.insert(command.end(), {"--tokens", dir / "tokens"});
    server.emplace(command, dir / "log");
    port = port_of(server->line());
    for (const auto& [path, bytes] : tiny_files()) write_file(dir / "files" / path, bytes);
  }

  TempDir dir;
  MadeBundle made = make_bundle(dir / "bundle", {.items = hub_items(repositories())});
  std::optional<ServerProcess> server;
  std::uint16_t port = 0;

  Ran client(const ClientPython& python, const std::string& mode) {
    const std::string address = "http://127.0.0.1:" + std::to_string(port) + "/c/test", home = (dir / "home").string();
    return run({"timeout", "120", "env", "HF_ENDPOINT=" + address, "MODELSCOPE_ENDPOINT=" + address, "HF_HOME=" + home,
                "MODELSCOPE_CACHE=" + home, "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_UPDATE_CHECK=1",
                "HF_TOKEN=hf_secret", "PYTHONPATH=" + python.modules, python.program, SEALIFT_HUB_CLIENT, mode,
                (dir / "files").string()});
  }
  // How often a file's bytes were sent.
  std::size_t sent() {
    const std::string log = read_file(dir / "log"), wanted = "GET /c/test/org/tiny/resolve/";
    std::size_t count = 0;
    for (std::size_t at = 0; (at = log.find(wanted, at)) != log.npos; at += wanted.size()) ++count;
    return count;
  }
};

}  // namespace

TEST_CASE("each version of the hub's client downloads a model, finds it in its cache, and tells what is missing") {
  for (const ClientPython& python : with_older(hub_python(), "huggingface_hub", {"0.20.3", "0.36.0"})) {
    CAPTURE(python.program);
    HubSite site(true);
    CHECK(fetch(site.port, "/api/models/org/tiny").status == 401);
    const Ran first = site.client(python, "download");
    INFO(first.output << first.errors);
    REQUIRE(first.output == "good\n");
    const std::size_t before = site.sent();
    CHECK(before >= tiny_files().size() - 1);  // the empty one needs no bytes
    const Ran again = site.client(python, "again");
    INFO(again.output << again.errors);
    CHECK(again.output == "good\n");
    CHECK(site.sent() == before);
  }
}

TEST_CASE(
    "slow: transformers and datasets load a configuration, a tokenizer and rows by the names of their repositories" *
    doctest::skip(std::getenv("SEALIFT_TEST_SLOW") == nullptr)) {
  const ClientPython python = hub_python();
  if (python.program.empty()) return;
  HubSite site(true);
  for (const std::string mode : {"transformers", "datasets"}) {
    const Ran ran = site.client(python, mode);
    INFO(ran.output << ran.errors);
    CHECK(ran.output == "good\n");
  }
}

// Clients before 1.40 take nothing else.
TEST_CASE("each version of ModelScope's client downloads a model and a data set by https") {
  for (const ClientPython& python : with_older(ClientPython{modelscope_python()}, "modelscope", {"1.28.0"})) {
    CAPTURE(python.program);
    const TempDir dir;
    const Authority authority(dir / "ca");
    authority.sign("server", "localhost");
    const MadeBundle made = make_bundle(dir / "bundle", {.items = hub_items(repositories())});
    for (const auto& [path, bytes] : tiny_files()) write_file(dir / "files" / path, bytes);
    ServerProcess server(serve({made.folder, "--fingerprint", made.fingerprint(), "--tls-certificate",
                                authority.certificate("server"), "--tls-key", authority.key("server")}),
                         dir / "log");
    const std::string address = "127.0.0.1:" + std::to_string(port_of(server.line())) + "/c/test";
    const Ran ran =
        run({"env", "MODELSCOPE_DOMAIN=" + address, "MODELSCOPE_ENDPOINT=https://" + address,
             "REQUESTS_CA_BUNDLE=" + authority.certificate("ca").string(),
             "SSL_CERT_FILE=" + authority.certificate("ca").string(), "MODELSCOPE_CACHE=" + (dir / "home").string(),
             "timeout", "120", python.program, SEALIFT_HUB_CLIENT, "modelscope", (dir / "files").string()});
    INFO(ran.output << ran.errors << read_file(dir / "log"));
    CHECK(ran.output.ends_with("good\n"));
  }
}

TEST_CASE("ModelScope's client downloads a model and a data set, and tells what is missing") {
  const ClientPython python = {modelscope_python()};
  if (python.program.empty()) return;
  HubSite site(false);
  const Ran ran = site.client(python, "modelscope");
  const bool data = run({python.program, "-c", "import datasets"}).status == 0;
  const Ran rows = data ? site.client(python, "msdatasets") : Ran{0, "good\n", ""};
  if (!data) sealift::test::left_out("that Python has no modelscope[datasets]");
  INFO(ran.output << ran.errors << rows.output << rows.errors << read_file(site.dir / "log"));
  CHECK(ran.output.ends_with("good\n"));
  CHECK(rows.output.ends_with("good\n"));
}
