// SPDX-License-Identifier: Apache-2.0
// What a server's operators rely on: its audit log, /healthz, /metrics, and SIGHUP.
// Lines of the log are held to our strict JSON, whatever a client sent.
#include <sys/resource.h>
#include <sys/un.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "bundle/core/json.hpp"
#include "offline_repo/server/service_manager.hpp"
#include "offline_repo/views/tokens.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/offline_repo/server_process.hpp"
#include "tests/offline_repo/token_file.hpp"
#include "tests/support/await.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;
namespace fs = std::filesystem;

namespace {

std::vector<Json> lines_of(const fs::path& path) {
  const std::string text = read_file(path);
  std::vector<Json> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    lines.push_back(parse_json(text.substr(begin, end - begin), "audit"));
    begin = end + 1;
  }
  return lines;
}

// A line is written after its answer has arrived.
void await_lines(const fs::path& path, std::ptrdiff_t count) {
  await(std::to_string(count) + " lines", [&] {
    const std::string text = read_file(path);
    return std::count(text.begin(), text.end(), '\n') >= count;
  });
}

void damage(const MadeBundle& made, std::uint64_t offset) {
  std::fstream file(made.volume(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset)).put(static_cast<char>(byte ^ 1)).flush();
}

const fs::path& sample_unit() {
  static const fs::path path =
      fs::path(SEALIFT_HUB_CLIENT).parent_path() / "../../samples/repository/sealift-repo.service";
  return path;
}

// The words of a setting, whose lines may go on; systemd's own quoting is not used there.
std::vector<std::string> words_of_setting(const std::string& unit, const std::string& name) {
  const std::size_t begin = ("\n" + unit).find("\n" + name + "=");
  REQUIRE(begin != std::string::npos);
  std::string line = unit.substr(begin + name.size() + 1);
  for (std::size_t end = 0; (end = line.find('\n', end)) != std::string::npos && line[end - 1] == '\\';)
    line.replace(end - 1, 2, "  ");
  std::istringstream text(line.substr(0, line.find('\n')));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// The first page of metrics that has all `lines`, since a request is counted after its answer has arrived; the last one
// asked for where 20 seconds bring none.
RawResponse await_metrics(std::uint16_t port, const std::vector<std::string>& lines) {
  RawResponse page;
  for (int tries = 0; tries < 2000; ++tries, ::usleep(10'000)) {
    page = fetch(port, "/metrics");
    if (std::all_of(lines.begin(), lines.end(), [&](const std::string& line) { return has_line(page.body, line); }))
      break;
  }
  return page;
}

}  // namespace

TEST_CASE("the audit log says who took which entry, with digest, range and bytes") {
  const TempDir dir;
  const fs::path path = dir / "audit";
  Live live({}, {.audit = std::make_shared<AuditLog>(path)});
  fetch(live.port, live.target("demo"), "Range: bytes=2-5\r\nUser-Agent: pip/26.3\r\n");
  await_lines(path, 1);
  fetch(live.port, "/nowhere", "", "DELETE");
  live.finish();
  const std::vector<Json> lines = lines_of(path);
  REQUIRE(lines.size() == 2);
  const Json& first = lines[0];
  CHECK(first.at("client") == "127.0.0.1");
  CHECK(first.at("method") == "GET");
  CHECK(first.at("target") == live.target("demo"));
  CHECK(first.at("status") == 206);
  CHECK(first.at("bytes") == 4);
  CHECK(first.at("complete") == true);
  CHECK(first.at("bundle") == "tiny-1");
  CHECK(first.at("entry") == live.wheel("demo").entry->path.text());
  CHECK(first.at("sha256") == live.wheel("demo").sha256.hex());
  CHECK(first.at("range") == "bytes=2-5");
  CHECK(first.at("user_agent") == "pip/26.3");
  const std::string time = first.at("time");
  CHECK(time.size() == std::string("2026-01-01T00:00:00.000Z").size());
  CHECK(time.ends_with("Z"));
  CHECK(lines[1].at("status") == 405);
  CHECK_FALSE(lines[1].contains("entry"));
}

TEST_CASE("whatever a client sends is one line of strict JSON in the audit log, and can be read back") {
  const TempDir dir;
  const fs::path path = dir / "audit";
  Live live({}, {.audit = std::make_shared<AuditLog>(path)});
  const std::vector<std::string> targets = {
      "/\"},{\"status\":200",        "/a\\x0a\\",    "/%0a%00", "/\xff\xfe\xc3\x28",
      "/" + std::string(9'000, 'x'), "/\xe2\x80\xa8"};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    fetch(live.port, targets[i], "User-Agent: \"\\\x80{}\r\n");
    await_lines(path, static_cast<std::ptrdiff_t>(i + 1));
  }
  {
    RawClient client(live.port);
    client.send("nonsense\r\n\r\n");
    CHECK(client.receive().status == 400);
  }
  live.finish();
  const std::vector<Json> lines = lines_of(path);
  REQUIRE(lines.size() == targets.size() + 1);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Json& line = lines[i];
    if (!line.contains("target")) {
      CHECK(line.at("status") == 400);  // Beast does not take it
      continue;
    }
    CHECK(line.at("target") == escaped_bytes(targets[i]));
  }
  CHECK(lines[0].at("target") == targets[0]);
  CHECK(lines.back().at("status") == 400);
  CHECK(escaped_bytes("a\\x0a\n\xff") == "a\\x5cx0a\\x0a\\xff");
  CHECK(escaped_bytes(std::string(5'000, 'x')).size() == 2'004);
}

TEST_CASE("lines that a full disk refused wait, and are written first once there is room") {
  const TempDir dir;
  const fs::path path = dir / "audit";
  fs::create_symlink("/dev/full", path);
  AuditLog log(path);
  CHECK_FALSE(log.write("1"));
  CHECK_FALSE(log.write("2"));
  CHECK_FALSE(log.writable());
  fs::remove(path);
  CHECK(log.reopen());
  CHECK(log.write("3"));
  CHECK(log.writable());
  CHECK(read_file(path) == "1\n2\n3\n");
  CHECK(log.lost() == 0);
  CHECK_REFUSED(AuditLog(dir / "absent" / "audit"), Missing, "audit log");
}

TEST_CASE("half a line that a full disk took is taken away again") {
  const TempDir dir;
  AuditLog log(dir / "audit");
  CHECK(log.write("first"));
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10, .rlim_max = old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const bool written = log.write("the second line");
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK_FALSE(written);
  CHECK(read_file(dir / "audit") == "first\n");
  CHECK(log.writable());
  CHECK(read_file(dir / "audit") == "first\nthe second line\n");
}

TEST_CASE("without room for the audit log a server goes on, or answers 503 where the log is required") {
  for (const bool required : {false, true}) {
    CAPTURE(required);
    Live live({}, {.audit = std::make_shared<AuditLog>("/dev/full"), .audit_required = required});
    CHECK(fetch(live.port, "/simple/").status == 200);  // the line that fails is this one's
    live.await_log("fault: the audit log cannot be written");
    CHECK(fetch(live.port, "/simple/").status == (required ? 503 : 200));
    CHECK(fetch(live.port, "/healthz").status == 200);
    CHECK(fetch(live.port, "/metrics").body.find("sealift_audit_failures_total 0\n") == std::string::npos);
  }
}

TEST_CASE("SIGHUP opens the audit log anew, so that it can be rotated") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", {});
  const fs::path path = dir / "audit";
  ServerProcess child(serve({made.folder, "--fingerprint", made.fingerprint(), "--audit-log", path}), dir / "log");
  const std::uint16_t port = port_of(child.line());
  CHECK(fetch(port, "/simple/").status == 200);
  await("a line of the audit log", [&] { return !read_file(path).empty(); });
  fs::rename(path, dir / "audit.1");
  child.send(SIGHUP);
  await("a new audit log", [&] { return fs::exists(path); });
  CHECK(fetch(port, "/simple/demo/").status == 200);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  REQUIRE(lines_of(dir / "audit.1").size() == 1);
  REQUIRE(lines_of(path).size() == 1);
  CHECK(lines_of(path)[0].at("target") == "/simple/demo/");
  CHECK(run(serve({made.folder, "--fingerprint", made.fingerprint(), "--audit-required"})).status == 2);
  CHECK(run(serve({made.folder, "--fingerprint", made.fingerprint(), "--audit-log", dir / "no" / "audit"})).status ==
        7);
}

TEST_CASE("a chunk that fails its digest makes the server unhealthy, with the reason") {
  Live live({.items = {wheel_item(big_wheel(300'000))}});
  const RawResponse good = fetch(live.port, "/healthz");
  CHECK(good.status == 200);
  CHECK(good.body == "good\n");
  damage(live.made, live.wheel("big").entry->offset + 150'000);
  CHECK_FALSE(fetch(live.port, live.target("big")).complete);
  const RawResponse bad = fetch(live.port, "/healthz");
  CHECK(bad.status == 503);
  CHECK(bad.body.find("tiny-1.vol001 at offset ") != std::string::npos);
  CHECK(bad.headers.at("cache-control") == "no-store");
  CHECK(has_line(fetch(live.port, "/metrics").body, "sealift_chunks_failed_total 1"));
  CHECK(has_line(fetch(live.port, "/metrics").body, "sealift_healthy 0"));
  CHECK(fetch(live.port, "/simple/").status == 200);
}

TEST_CASE("a volume that can no longer be read makes the server unhealthy though nobody fetches from it") {
  Live live({});
  fs::resize_file(live.made.volume(0), 0);
  const RawResponse bad = fetch(live.port, "/healthz");
  CHECK(bad.status == 503);
  CHECK(bad.body.find("tiny-1.vol001") != std::string::npos);
}

TEST_CASE("metrics count requests by kind and status, and never repeat what a client sent") {
  Live live({});
  fetch(live.port, live.target("demo"));
  fetch(live.port, live.target("demo"), "Range: bytes=0-9\r\n");
  fetch(live.port, "/simple/demo/");
  fetch(live.port, "/evil\"}-1", "User-Agent: evil\r\n", "EVIL");
  const std::vector<std::string> counted = {"sealift_requests_total{route=\"wheel\",status=\"200\"} 1",
                                            "sealift_requests_total{route=\"wheel\",status=\"206\"} 1",
                                            "sealift_requests_total{route=\"index\",status=\"200\"} 1",
                                            "sealift_requests_total{route=\"other\",status=\"405\"} 1"};
  const RawResponse page = await_metrics(live.port, counted);
  CHECK(page.headers.at("content-type") == "text/plain; version=0.0.4; charset=utf-8");
  for (const std::string& line : counted) CHECK_MESSAGE(has_line(page.body, line), page.body);
  CHECK(has_line(page.body, "sealift_connections_refused_total 0"));
  CHECK(has_line(page.body, "sealift_healthy 1"));
  CHECK(page.body.find("sealift_bundle_info{name=\"tiny\",version=\"1\",identity=\"") != std::string::npos);
  CHECK(page.body.find("evil") == std::string::npos);
  std::size_t samples = 0;
  for (std::size_t begin = 0; begin < page.body.size();) {
    const std::size_t end = page.body.find('\n', begin), space = page.body.rfind(' ', end);
    REQUIRE(end != std::string::npos);
    const std::string line = page.body.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# HELP sealift_") || line.starts_with("# TYPE sealift_")) continue;
    ++samples;
    CHECK(line.starts_with("sealift_"));
    CHECK(page.body.substr(space + 1, end - space - 1).find_first_not_of("0123456789") == std::string::npos);
  }
  CHECK(samples > 12);
  CHECK(fetch(live.port, "/metrics", "", "HEAD").status == 200);
  CHECK(fetch(live.port, "/healthz", "", "PUT").status == 405);
}

TEST_CASE("--admin-listen answers health and metrics, nothing else, and takes them from the other address") {
  Live live({}, {.max_connections = 1, .admin_listen = ListenAddress{.host = "127.0.0.1", .port = 0}});
  const std::uint16_t admin = live.server->admin_address()->port;
  RawClient holds(live.port);
  CHECK(fetch(admin, "/healthz").status == 200);
  CHECK(fetch(admin, "/metrics").status == 200);
  CHECK(fetch(admin, "/simple/").status == 404);
  CHECK(fetch(live.port, "/healthz").status == 404);
  CHECK(fetch(live.port, "/metrics").status == 404);
  CHECK(fetch(live.port, "/simple/").status == 200);
}

TEST_CASE("where tokens are needed, health and metrics name no bundle to those without one, but to the operator") {
  ServerOptions options{.tokens = [] { return parse_tokens(token_line("alice", "a-secret"), "tokens"); }};
  Live live({}, options);
  CHECK(fetch(live.port, "/healthz").body == "good\n");
  const std::string page = fetch(live.port, "/metrics").body;
  CHECK(has_line(page, "sealift_healthy 1"));
  CHECK(page.find("tiny") == std::string::npos);
  options.admin_listen = ListenAddress{.host = "127.0.0.1", .port = 0};
  Live watched({}, options);
  const std::string all = fetch(watched.server->admin_address()->port, "/metrics").body;
  CHECK(all.find("sealift_bundle_info{name=\"tiny\"") != std::string::npos);
}

TEST_CASE("a token is read from Bearer and Basic, and from nothing else") {
  CHECK(token_in("Bearer abc") == "abc");
  CHECK(token_in("bearer   abc ") == "abc");
  CHECK(token_in("Basic YW55OnNlY3JldA==") == "secret");  // any:secret
  CHECK(token_in("basic YW55OnNlY3JldA") == "secret");
  CHECK(token_in("Basic c2VjcmV0Og==") == "secret");  // secret:
  CHECK(token_in("Basic OmE6Yg==") == "a:b");         // :a:b
  for (const char* text : {"", "Bearer", "Bearer ", "Basic", "Basic Og==", "Basic YW55", "Basic YW5*OnNlY3JldA==",
                           "Digest abc", "YW55OnNlY3JldA==", "Basic =", "Basic YW55OnNlY3JldA==="}) {
    CAPTURE(text);
    CHECK_FALSE(token_in(text));
  }
}

TEST_CASE("a client without a token is told whom to ask, as the site has it written, and where it has not, how") {
  const auto refused = [](const std::string& contact, const std::string& target) {
    ServerOptions options{.tokens = [] { return parse_tokens(token_line("alice", "a-secret"), "tokens"); }};
    options.contact = contact;
    Live live({}, options);
    const RawResponse response = fetch(live.port, target);
    CHECK(response.status == 401);
    CHECK(response.headers.at("www-authenticate").starts_with("Basic realm=\"sealift-repo\""));
    return response.body;
  };
  constexpr char kRoom[] = "the platform team, room 4.12";
  for (const char* target : {"/", "/simple/", "/org/tiny", "/v2/", "/no-such-page"}) {
    CAPTURE(target);
    CHECK(refused(kRoom, target).find(std::string("who gives one: ") + kRoom) != std::string::npos);
  }
  const std::string alone = refused("", "/simple/");
  CHECK(alone.find("as a password, or as a Bearer token") != std::string::npos);
  CHECK(alone.find("who gives one") == std::string::npos);
}

TEST_CASE("a file of tokens says which line is wrong") {
  const std::string digest(64, 'a');
  const std::vector<Token> tokens = parse_tokens(
      "\n# all\n a " + digest + " # everything\nb " + std::string(64, 'B') + " bundle:x\tchannel:y\r\n", "f");
  REQUIRE(tokens.size() == 2);
  CHECK(tokens[0].grants.empty());
  CHECK(tokens[1].grants == std::vector<std::string>{"bundle:x", "channel:y"});
  CHECK_REFUSED(parse_tokens("\na\n", "f"), Format, "f:2");
  CHECK_REFUSED(parse_tokens("a " + digest + "0", "f"), Format, "64 hexadecimal digits");
  CHECK_REFUSED(parse_tokens("a " + digest + " x", "f"), Format, "bundle:");
  CHECK_REFUSED(parse_tokens("a " + digest + "\na " + digest, "f"), Format, "twice");
  CHECK_REFUSED(parse_tokens("\"a " + digest, "f"), Format, "printable");
}

TEST_CASE("the program tells its service manager when it serves and when it ends") {
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "bundle", {});
  for (const std::string& name : {(dir / "notify").string(), "@sealift-test-" + std::to_string(::getpid())}) {
    CAPTURE(name);
    const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const auto told = [&] {
      char text[100];
      const ssize_t count = ::recv(socket.get(), text, sizeof text, 0);
      return count > 0 ? std::string(text, static_cast<std::size_t>(count)) : "";
    };
    std::vector<std::string> command = {"env", "NOTIFY_SOCKET=" + name};
    for (const std::string& word : serve({made.folder, "--fingerprint", made.fingerprint()})) command.push_back(word);
    ServerProcess child(command, dir / "log");
    CHECK(told() == "READY=1");
    CHECK(fetch(port_of(child.line()), "/simple/").status == 200);
    child.send(SIGTERM);
    CHECK(told() == "STOPPING=1");
    CHECK(child.wait() == 0);
  }
}

TEST_CASE("the command of the sample's systemd unit is one that the program takes, with all that it names") {
  std::vector<std::string> command = words_of_setting(read_file(sample_unit()), "ExecStart");
  REQUIRE(command.size() > 10);
  CHECK(fs::path(command[0]).filename() == "sealift-repo");
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "env-1", {.name = "env"});
  REQUIRE(run({SEALIFT_INSTALL_PROGRAM, "trust", "add", made.folder, "--prefix", dir / "env", "--fingerprint",
               made.fingerprint()})
              .status == 0);
  fs::create_directories(dir / "bundles");
  write_tokens(dir / "tokens", token_line("alice", "secret"));
  std::map<std::string, std::string> places = {{"--watch", dir / "bundles"}, {"--trust", dir / "env" / "trust"},
                                               {"--listen", "127.0.0.1:0"},  {"--admin-listen", "127.0.0.1:0"},
                                               {"--tokens", dir / "tokens"}, {"--audit-log", dir / "audit"}};
  command[0] = SEALIFT_REPO_PROGRAM;
  for (std::size_t i = 1; i < command.size(); ++i)
    if (const auto place = places.find(command[i - 1]); place != places.end()) {
      command[i] = place->second;
      places.erase(place);
    }
  CHECK(places.empty());
  ServerProcess child(command, dir / "log");
  const std::string listening = child.line();
  INFO(read_file(dir / "log"));
  const std::uint16_t port = port_of(listening);
  CHECK(run({SEALIFT_REPO_PROGRAM, "add", dir / "bundles", made.folder}).status == 0);
  child.send(SIGHUP);
  await("the bundle's view", [&] { return fetch(port, "/b/env-1/simple/", bearer("secret")).status == 200; });
  CHECK(fetch(port, "/simple/").status == 401);
  child.send(SIGTERM);
  CHECK(child.wait() == 0);
  CHECK_FALSE(read_file(dir / "audit").empty());
}

TEST_CASE("systemd has no complaint about the sample's unit, and grades what it leaves open as little") {
  if (run({"systemd-analyze", "--version"}).status != 0) {
    sealift::test::left_out("this machine has no systemd-analyze");
    return;
  }
  const TempDir dir;
  std::string unit = read_file(sample_unit());
  const std::string program = words_of_setting(unit, "ExecStart")[0];
  unit.replace(unit.find(program), program.size(), SEALIFT_REPO_PROGRAM);  // it looks for the file
  write_file(dir / "sealift-repo.service", unit);
  const Ran verified = run({"systemd-analyze", "verify", "--man=no", dir / "sealift-repo.service"});
  CHECK_MESSAGE(verified.status == 0, verified.errors);
  CHECK_MESSAGE(verified.errors.find("sealift-repo.service") == std::string::npos, verified.errors);
  const Ran graded =
      run({"systemd-analyze", "security", "--offline=yes", "--threshold=15", dir / "sealift-repo.service"});
  CHECK_MESSAGE(graded.status == 0, graded.output);  // 1.5 of 10
}

TEST_CASE("slow: the sample's unit serves, reloads, comes again and stops under the real systemd" *
          doctest::skip(std::getenv("SEALIFT_TEST_SLOW") == nullptr)) {
  const TempDir dir;
  const MadeBundle made =
      make_bundle(dir / "env-1", {.name = "env", .chunk_size = 1 << 20, .items = {wheel_item(big_wheel(3'000'000))}});
  const Ran ran = run({fs::path(SEALIFT_HUB_CLIENT).parent_path() / "service_test.sh", SEALIFT_REPO_PROGRAM,
                       SEALIFT_INSTALL_PROGRAM, made.folder, made.fingerprint(), sample_unit()});
  INFO(ran.output << ran.errors);
  if (ran.status == 77)
    MESSAGE(ran.output);
  else
    CHECK(ran.status == 0);
}
