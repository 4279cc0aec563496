// SPDX-License-Identifier: Apache-2.0
// The real program with TLS of its own, as curl and pip see it: certificates that a made authority signed, a reload,
// clients with certificates, and what is wrong at the start.
#include <chrono>
#include <thread>

#include "tests/offline_repo/authority.hpp"
#include "tests/offline_repo/hub_bundle.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/offline_repo/token_file.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBig = 12'000'000;

bool can_try() {
  if (has_shell_program("openssl") && has_shell_program("curl")) return true;
  sealift::test::left_out("needs openssl and curl");
  return false;
}

// A server with TLS over a bundle with a large wheel and a hub's repository.
struct TlsSite {
  explicit TlsSite(const std::vector<std::string>& more = {}) {
    authority.sign("server", "localhost");
    std::vector<std::string> command =
        serve({made.folder, "--fingerprint", made.fingerprint(), "--tls-certificate", authority.certificate("server"),
               "--tls-key", authority.key("server"), "--admin-listen", "127.0.0.1:0"});
    for (const std::string& word : more) command.push_back(word);
    server.emplace(command, dir / "log");
    const std::string line = server->line();
    REQUIRE(line.starts_with("listening on https://127.0.0.1:"));
    port = port_of(line);
    admin = static_cast<std::uint16_t>(std::stoi([&] {
      const std::string second = server->line();
      return second.substr(second.rfind(':') + 1);
    }()));
  }

  // curl's output, or "curl NUMBER" for what it could not do.
  std::string curl(const std::string& target, const std::vector<std::string>& words = {}) const {
    std::vector<std::string> command = {"curl", "-sS", "--noproxy", "*", "--max-time", "60"};
    command.insert(command.end(), words.begin(), words.end());
    if (std::find(words.begin(), words.end(), "--cacert") == words.end())
      command.insert(command.end(), {"--cacert", authority.certificate("ca")});
    command.push_back("https://127.0.0.1:" + std::to_string(port) + target);
    const Ran ran = run(command);
    return ran.status == 0 ? ran.output : "curl " + std::to_string(ran.status);
  }
  std::string status(const std::string& target, std::vector<std::string> words = {}) const {
    words.insert(words.end(), {"-o", "/dev/null", "-w", "%{http_code}"});
    return curl(target, words);
  }
  std::vector<std::string> as(const Authority& who, const std::string& name) const {
    return {"--cert", who.certificate(name), "--key", who.key(name)};
  }

  TempDir dir;
  Authority authority{dir / "ca"};
  MadeBundle made = [&] {
    TinyBundle tiny{.chunk_size = std::uint64_t{1} << 20,
                    .items = hub_items({{.name = {.id = "org/tiny"}, .files = {{"config.json", "{}"}}}})};
    tiny.items.push_back(wheel_item(big_wheel(kBig)));
    return make_bundle(dir / "bundle", std::move(tiny));
  }();
  std::optional<ServerProcess> server;
  std::uint16_t port = 0, admin = 0;

  std::string wheel_target() const {
    const std::string page = curl("/simple/big/");
    const std::size_t begin = page.find("/files/"), end = page.find('#', begin);
    REQUIRE(end != page.npos);
    return page.substr(begin, end - begin);
  }
};

// What a reload is to change; it is asked for by a signal, so it takes a moment.
bool becomes(const std::function<bool()>& good) {
  for (int i = 0; i < 200; ++i) {
    if (good()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return false;
}

}  // namespace

TEST_CASE("with a certificate the server speaks TLS alone: files whole and in ranges, requests with bodies, pip") {
  if (!can_try()) return;
  const TlsSite site;
  const std::string target = site.wheel_target(), wheel = read_file(site.made.volume(0));
  const std::string got = site.curl(target);
  REQUIRE(got.size() > kBig);
  CHECK(wheel.find(got) != wheel.npos);
  CHECK(site.curl(target, {"--limit-rate", "60M"}) == got);
  CHECK(site.curl(target, {"-r", "1048570-1048585"}) == got.substr(1048570, 16));
  CHECK(site.curl(target, {"-r", "500000-3500000", "--tls-max", "1.2"}) == got.substr(500'000, 3'000'001));
  CHECK(site.curl("/", {"-I"}).find("HTTP/1.1 200") == 0);
  CHECK(site.curl("/").find("--index-url https://127.0.0.1:") != std::string::npos);
  CHECK(site.curl("/api/models/org/tiny/paths-info/main", {"-d", "paths=config.json"}).find("\"config.json\"") !=
        std::string::npos);
  CHECK(site.status("/simple/", {"--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"}) == "curl 35");
  const TempDir other;
  const Authority stranger(other / "ca");
  CHECK(site.status("/simple/", {"--cacert", stranger.certificate("ca")}) == "curl 60");
  RawClient plain(site.port);
  plain.send(request_text("/simple/"));
  CHECK(plain.receive().status == 0);
  const std::string metrics = fetch(site.admin, "/metrics").body;
  CHECK(metrics.find("sealift_tls_certificate_ends_seconds ") != std::string::npos);
  CHECK(read_file(site.dir / "log").find("the certificate for TLS ends ") != std::string::npos);  // in two days
  const Ran pip = run({"/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "download",
                       "--no-cache-dir", "--no-deps", "--cert", site.authority.certificate("ca"), "--index-url",
                       "https://127.0.0.1:" + std::to_string(site.port) + "/simple/", "-d", site.dir / "pip", "big"});
  if (pip.errors.find("No module named pip") != std::string::npos) return left_out("needs pip");
  CHECK_MESSAGE(pip.status == 0, pip.errors);
}

TEST_CASE("SIGHUP takes a new certificate for new connections, and a bad one changes nothing") {
  if (!can_try()) return;
  TlsSite site;
  const Authority next(site.dir / "next");
  next.sign("server", "localhost");
  const std::vector<std::string> by_next = {"--cacert", next.certificate("ca")};
  CHECK(site.status("/simple/") == "200");
  CHECK(site.status("/simple/", by_next) == "curl 60");
  fs::copy_file(next.key("server"), site.authority.key("server"), fs::copy_options::overwrite_existing);
  site.server->send(SIGHUP);  // the key of another certificate
  CHECK(becomes(
      [&] { return read_file(site.dir / "log").find("this key is not the certificate's") != std::string::npos; }));
  CHECK(read_file(site.dir / "log").find("the certificate for TLS stays as it was") != std::string::npos);
  CHECK(site.status("/simple/") == "200");
  fs::copy_file(next.certificate("server"), site.authority.certificate("server"), fs::copy_options::overwrite_existing);
  site.server->send(SIGHUP);
  CHECK(becomes([&] { return site.status("/simple/", by_next) == "200"; }));
  CHECK(site.status("/simple/") == "curl 60");
}

TEST_CASE("with authorities of clients each client has a certificate, and the audit log its name") {
  if (!can_try()) return;
  const TempDir dir;
  const Authority clients(dir / "clients"), strangers(dir / "strangers");
  clients.sign("alice", "alice");
  strangers.sign("alice", "alice");
  const TlsSite site({"--tls-clients", clients.certificate("ca"), "--audit-log", dir / "audit"});
  CHECK(site.status("/simple/", site.as(clients, "alice")) == "200");
  CHECK(site.status("/simple/").starts_with("curl "));
  CHECK(site.status("/simple/", site.as(strangers, "alice")).starts_with("curl "));
  CHECK(read_file(dir / "audit").find("\"user\":\"alice\"") != std::string::npos);
  CHECK(fetch(site.admin, "/healthz").status == 200);  // which nobody needs one for
}

TEST_CASE("with tokens a certificate counts for what the file of tokens says of its name, and a token does without") {
  if (!can_try()) return;
  const TempDir dir;
  const Authority clients(dir / "clients");
  for (const std::string name : {"alice", "bob", "eve"}) clients.sign(name, name);
  clients.sign("spaced", "alice x");
  write_tokens(dir / "tokens", "build-farm certificate:alice channel:test\nother certificate:bob channel:none\n" +
                                   token_line("reader", "secret"));
  const TlsSite site(
      {"--tls-clients", clients.certificate("ca"), "--tokens", dir / "tokens", "--audit-log", dir / "audit"});
  const std::string project = "/simple/big/";
  CHECK(site.status(project) == "401");
  CHECK(site.status(project, {"-u", "any:secret"}) == "200");
  CHECK(site.status(project, site.as(clients, "alice")) == "200");
  CHECK(site.status(project, site.as(clients, "bob")) == "404");
  CHECK(site.status(project, site.as(clients, "eve")) == "401");
  CHECK(site.status(project, site.as(clients, "spaced")) == "401");
  std::vector<std::string> both = site.as(clients, "alice");
  both.insert(both.end(), {"-u", "any:wrong"});
  CHECK(site.status(project, both) == "401");  // who says a token is taken by it
  CHECK(read_file(dir / "audit").find("\"user\":\"build-farm\"") != std::string::npos);
}

TEST_CASE("a certificate without its key, another one's key, a key that all may read and no PEM are refused at start") {
  if (!can_try()) return;
  const TempDir dir;
  const Authority authority(dir / "ca");
  authority.sign("server", "localhost");
  authority.sign("other", "localhost");
  const std::string bundle = dir / "absent", sha = "sha256:" + std::string(64, '0');
  const auto start = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {bundle, "--fingerprint", sha});
    return run(serve(words));
  };
  const std::string certificate = authority.certificate("server"), key = authority.key("server");
  CHECK(start({"--tls-certificate", certificate}).status == 2);
  CHECK(start({"--tls-clients", certificate}).status == 2);
  const Ran wrong = start({"--tls-certificate", certificate, "--tls-key", authority.key("other")});
  CHECK(wrong.status == 4);
  CHECK(wrong.errors.find("this key is not the certificate's") != std::string::npos);
  CHECK(start({"--tls-certificate", key, "--tls-key", key}).errors.find("no certificate for TLS") != std::string::npos);
  CHECK(start({"--tls-certificate", certificate, "--tls-key", certificate}).status != 0);
  CHECK(start({"--tls-certificate", certificate, "--tls-key", key, "--tls-clients", key})
            .errors.find("no authority of clients") != std::string::npos);
  fs::permissions(key, fs::perms::others_read, fs::perm_options::add);
  const Ran open = start({"--tls-certificate", certificate, "--tls-key", key});
  CHECK(open.status == 2);
  CHECK(open.errors.find("chmod 640") != std::string::npos);
}

TEST_CASE("a handshake that does not end, bytes that are none, and a client that is let go keep nobody else waiting") {
  if (!can_try()) return;
  const TempDir dir;
  const Authority authority(dir / "ca");
  authority.sign("server", "localhost");
  sealift::offline_repo::ServerOptions options{.idle_timeout = std::chrono::milliseconds(300)};
  options.tls = [&] {
    return std::make_shared<const sealift::offline_repo::TlsContext>(sealift::offline_repo::TlsFiles{
        .certificate = authority.certificate("server"), .key = authority.key("server")});
  };
  Live live({}, std::move(options));
  const std::string record("\x16\x03\x01\x40\x00\x01", 6);  // the beginning of a long greeting
  for (const std::string& said : {record, std::string("\x16"), std::string()}) {
    RawClient waits(live.port);
    waits.send(said);
    CHECK(waits.ended());
  }
  for (const std::string& said : {noise(5000), std::string(20'000, '\x16'), request_text("/simple/")}) {
    RawClient strange(live.port);
    strange.send(said);
    CHECK(strange.receive().status == 0);
  }
  RawClient resets(live.port);
  resets.send(record);
  resets.reset();
  const Ran good = run({"curl", "-sS", "--noproxy", "*", "--cacert", authority.certificate("ca"), "-o", "/dev/null",
                        "-w", "%{http_code}", "https://127.0.0.1:" + std::to_string(live.port) + "/simple/"});
  CHECK_MESSAGE(good.output == "200", good.errors);
}
