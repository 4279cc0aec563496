// SPDX-License-Identifier: Apache-2.0
// The server in this process over a real bundle, spoken to byte by byte: streaming, limits, damage, stopping.
#include "offline_repo/server/server.hpp"

#include "bundle/core/json.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;

namespace {

ServerOptions with_deadline(std::chrono::milliseconds time) {
  ServerOptions options;
  options.write_timeout = time;
  return options;
}

// Takes 8 MiB of a large wheel at once, so that the system keeps much for it, and is slow from then on.
struct SlowClient {
  // `deadline` of each piece; `room`: bytes that its system takes before it.
  explicit SlowClient(std::chrono::milliseconds deadline, int room = 1 << 20)
      : live({.chunk_size = 1 << 20, .items = {wheel_item(big_wheel(20'000'000))}}, with_deadline(deadline)),
        client(live.port, 0, room) {
    client.send(request_text(live.target("big")));
    client.take(8 << 20);
  }
  void take(std::chrono::milliseconds after, std::size_t bytes) {
    std::this_thread::sleep_for(after);
    client.take(bytes);
  }
  // And a little more; too little for the server's socket to be ready again.
  void take_a_piece() { take(std::chrono::milliseconds(300), 320 << 10); }

  Live live;
  RawClient client;
};

}  // namespace

TEST_CASE("a log that never says what a test waits for fails the test, and shows what it says") {
  Live live({});
  fetch(live.port, "/nowhere");
  live.await_log("GET /nowhere 404");
  CHECK_THROWS_WITH(live.await_log("GET /elsewhere", std::chrono::milliseconds(10)),
                    doctest::Contains("lacks \"GET /elsewhere\""));
  CHECK_THROWS_WITH(live.await_log("GET /elsewhere", std::chrono::milliseconds(10)),
                    doctest::Contains("GET /nowhere 404"));
}

TEST_CASE("a wheel that spans chunks and volumes arrives as it was published, whole and in parts") {
  const TinyWheel wheel = big_wheel(900'000);
  const std::string truth = make_wheel(wheel);
  Live live({.volume_size = 65536, .items = {wheel_item(wheel)}});
  REQUIRE(live.made.manifest.payload.volumes.size() > 5);
  const RawResponse whole = fetch(live.port, live.target("big"));
  CHECK(whole.status == 200);
  CHECK(whole.body == truth);
  CHECK(whole.headers.at("content-type") == "application/octet-stream");
  for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>{0, 0},
                                    {4095, 4096},
                                    {1, truth.size() - 2},
                                    {65000, 70000},
                                    {truth.size() - 1, truth.size() - 1}}) {
    const std::string range = std::to_string(first) + "-" + std::to_string(last);
    const RawResponse part = fetch(live.port, live.target("big"), "Range: bytes=" + range + "\r\n");
    CHECK(part.status == 206);
    CHECK(part.headers.at("content-range") == "bytes " + range + "/" + std::to_string(truth.size()));
    CHECK(part.body == truth.substr(first, last - first + 1));
  }
}

TEST_CASE("a damaged chunk ends the connection, and not one wrong byte is delivered") {
  const TinyWheel wheel = big_wheel(300'000);
  const std::string truth = make_wheel(wheel);
  Live live({.items = {wheel_item(wheel)}});
  const std::uint64_t begin = live.wheel("big").entry->offset, hurt = begin + 150'000, chunk = hurt / 4096 * 4096;
  std::fstream file(live.made.volume(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(hurt));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(hurt)).put(static_cast<char>(byte ^ 1)).flush();

  RawClient client(live.port);
  client.send(request_text(live.target("big")));
  const RawResponse cut = client.receive();
  CHECK(cut.status == 200);
  CHECK_FALSE(cut.complete);
  CHECK(cut.body == truth.substr(0, chunk - begin));
  CHECK(client.ended());

  const std::string in_chunk = std::to_string(chunk - begin + 10);
  CHECK(fetch(live.port, live.target("big"), "Range: bytes=" + in_chunk + "-" + in_chunk + "\r\n").body.empty());
  const RawResponse after = fetch(live.port, live.target("big"), "Range: bytes=200000-\r\n");
  CHECK(after.complete);
  CHECK(after.body == truth.substr(200'000));
  live.finish();
  CHECK(live.logged().find("fault: ") != std::string::npos);
  CHECK(live.logged().find("tiny-1.vol001 at offset " + std::to_string(chunk)) != std::string::npos);
  CHECK(live.logged().find(" 200 " + std::to_string(chunk - begin) + " of " + std::to_string(truth.size())) !=
        std::string::npos);
}

TEST_CASE("HEAD is GET without the body, for pages and for files") {
  Live live({});
  for (const std::string& target :
       {std::string("/"), std::string("/simple/"), live.target("demo"), live.target("demo") + ".metadata",
        std::string("/simple/demo"), std::string("/nowhere")}) {
    CAPTURE(target);
    RawResponse full = fetch(live.port, target);
    RawClient client(live.port);
    client.send(request_text(target, "", "HEAD") + request_text("/simple/", "Connection: close\r\n"));
    RawResponse head = client.receive(true);
    full.headers.erase("date"), head.headers.erase("date");
    CHECK(head.status == full.status);
    CHECK(head.headers == full.headers);
    CHECK(std::stoull(head.headers.at("content-length")) == full.body.size());
    CHECK(client.receive().status == 200);  // the next answer stands where a body would have stood
    CHECK(client.ended());
  }
}

TEST_CASE("the metadata that is delivered has the digest that the index announces") {
  Live live({});
  const RawResponse page = fetch(live.port, "/simple/demo/", "Accept: application/vnd.pypi.simple.v1+json\r\n");
  const Json file = parse_json(page.body, "page")["files"][0];
  const std::string url = file["url"].get<std::string>();
  REQUIRE(url.starts_with("../../"));
  const RawResponse metadata = fetch(live.port, "/" + url.substr(6) + ".metadata");
  CHECK(sha256(as_bytes(metadata.body)).hex() == file["core-metadata"]["sha256"].get<std::string>());
  CHECK(sha256(as_bytes(fetch(live.port, "/" + url.substr(6)).body)).hex() ==
        file["hashes"]["sha256"].get<std::string>());
}

TEST_CASE("one connection carries many requests, sent one after the other or all at once") {
  Live live({});
  RawClient client(live.port);
  std::string all;
  for (int i = 0; i < 20; ++i) all += request_text(i % 2 == 0 ? live.target("demo") : "/simple/");
  client.send(all);
  for (int i = 0; i < 20; ++i) {
    const RawResponse response = client.receive();
    CHECK(response.status == 200);
    CHECK(response.complete);
  }
  client.send("GET / HTTP/1.0\r\n\r\n");
  CHECK(client.receive().status == 200);
  CHECK(client.ended());
}

TEST_CASE("a request's head may come in pieces, cut anywhere, with the next request's beginning behind it") {
  Live live({});
  const std::string text = request_text("/simple/") + request_text("/simple/demo/");
  RawClient client(live.port);
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    CAPTURE(cut);
    client.send(text.substr(0, cut));
    if (cut % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    client.send(text.substr(cut));
    CHECK(client.receive().body.find("Simple index") != std::string::npos);
    CHECK(client.receive().body.find("Links for demo") != std::string::npos);
  }
  RawClient dripping(live.port);
  for (const char c : request_text("/simple/", "X: " + std::string(200, 'x') + "\r\n")) dripping.send({&c, 1});
  CHECK(dripping.receive().status == 200);
  RawClient large(live.port);
  large.send(request_text("/simple/", "X: " + std::string(15'000, 'x') + "\r\n"));
  CHECK(large.receive().status == 200);
}

TEST_CASE("a request that changes things is refused, its body never read as a request") {
  Live live({});
  RawClient client(live.port);
  const std::string smuggled = request_text("/simple/");
  client.send("POST /simple/ HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(smuggled.size()) +
              "\r\n\r\n" + smuggled);
  const RawResponse response = client.receive();
  CHECK(response.status == 405);
  CHECK(response.headers.at("allow") == "GET, HEAD");
  CHECK(response.headers.at("connection") == "close");
  CHECK(client.ended());
  RawClient chunked(live.port);
  chunked.send("GET / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled);
  CHECK(chunked.receive().status == 400);
  CHECK(chunked.ended());
}

TEST_CASE("requests other than HTTP, or too much of it, get one answer and the end of the connection") {
  Live live({});
  const std::pair<std::string, int> rows[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},                                        // no Host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},                  // two
      {"hello\r\n\r\n", 400},                                                 //
      {std::string("GET /a") + '\0' + "b HTTP/1.1\r\nHost: a\r\n\r\n", 400},  // NUL
      {"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 400},                             //
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},       //
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 431},
      {"GET /files/../../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404},
      {"GET /files/%2e%2e/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404},
      {"GET /%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 400},
  };
  for (const auto& [text, status] : rows) {
    CAPTURE(text.substr(0, 100));
    RawClient client(live.port);
    client.send(text);
    CHECK(client.receive().status == status);
    CHECK(client.ended());
  }
  CHECK(fetch(live.port, "/simple/").status == 200);
}

TEST_CASE("noise from many connections does not end the server") {
  Live live({});
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    RawClient client(live.port);
    std::string text = noise(random() % 300);
    if (round % 2 == 0) text = request_text(live.target("demo"), "Range: bytes=" + text.substr(0, 5) + "\r\n") + text;
    client.send(text);
  }
  CHECK(fetch(live.port, "/simple/").status == 200);
}

TEST_CASE("a client that does not finish its request is let go") {
  ServerOptions options;
  options.request_timeout = options.idle_timeout = std::chrono::milliseconds(100);
  Live live({}, options);
  RawClient silent(live.port), slow(live.port);
  slow.send("GET / HTTP/1.1\r\nHost:");
  CHECK(silent.ended());
  CHECK(slow.ended());
}

TEST_CASE("a client that does not take its answer is let go") {
  Live live({.chunk_size = 1 << 20, .items = {wheel_item(big_wheel(20'000'000))}},
            with_deadline(std::chrono::milliseconds(100)));
  RawClient client(live.port);
  client.send(request_text(live.target("big")));
  live.await_log("the client went away");
  const RawResponse cut = client.receive();
  CHECK(cut.status == 200);
  CHECK_FALSE(cut.complete);
}

TEST_CASE("a slow client keeps a long queue for as long as it takes a piece of it within each deadline") {
  SlowClient slow(std::chrono::milliseconds(800));
  const std::uint64_t before = slow.live.server->send_steps();
  for (int i = 0; i < 8; ++i) slow.take_a_piece();  // far longer than one deadline
  const std::uint64_t steps = slow.live.server->send_steps() - before;
  MESSAGE(steps << " calls, waits and turns while it was slow");
  CHECK(slow.client.receive().complete);
  CHECK(slow.live.logged().find("went away") == std::string::npos);
}

TEST_CASE("a client that was slow and then takes nothing more is let go, however much the system still has for it") {
  SlowClient slow(std::chrono::milliseconds(400));
  for (int i = 0; i < 2; ++i) slow.take_a_piece();  // one within each of two deadlines
  slow.live.await_log("the client went away");
  CHECK_FALSE(slow.client.receive().complete);
}

TEST_CASE("a client that takes less than a piece within each deadline is let go") {
  SlowClient slow(std::chrono::milliseconds(200), 128 << 10);  // a small window: the server learns of each take
  int takes = 0;
  for (; takes < 60 && slow.live.logged().find("the client went away") == std::string::npos; ++takes)
    slow.take(std::chrono::milliseconds(50), 32 << 10);  // 128 KiB within a deadline
  MESSAGE(takes << " takes of 32 KiB");
  CHECK(takes < 60);
  CHECK_FALSE(slow.client.receive().complete);
}

TEST_CASE("stopping ends idle connections at once and finishes the answer under way") {
  const TinyWheel wheel = big_wheel(20'000'000);
  const std::string truth = make_wheel(wheel);
  Live live({.chunk_size = 1 << 20, .items = {wheel_item(wheel)}});
  RawClient idle(live.port), busy(live.port);
  idle.send(request_text("/simple/"));
  CHECK(idle.receive().status == 200);
  busy.send(request_text(live.target("big")));
  busy.await_answer();  // a request that the server has not read yet counts as idle
  live.server->stop();
  CHECK(idle.ended());
  CHECK_THROWS(RawClient(live.port));
  const RawResponse whole = busy.receive();
  CHECK(whole.complete);
  CHECK((whole.body == truth));
  CHECK(busy.ended());
  live.finish();
}

TEST_CASE("an answer that nobody takes does not keep a stopped server alive") {
  ServerOptions options;
  options.stop_timeout = std::chrono::milliseconds(50);
  Live live({.chunk_size = 1 << 20, .items = {wheel_item(big_wheel(20'000'000))}}, options);
  RawClient client(live.port);
  client.send(request_text(live.target("big")));
  client.await_answer();
  live.finish();
}

TEST_CASE("each request is one line in the log, and a line cannot be forged") {
  Live live({});
  fetch(live.port, "/simple/demo/");
  fetch(live.port, "/nowhere?x=%0aforged");
  live.finish();
  const std::string log = live.logged();
  CHECK(std::count(log.begin(), log.end(), '\n') == 2);
  CHECK(log.find(" 127.0.0.1 GET /simple/demo/ 200 ") != std::string::npos);
  CHECK(log.find(" 127.0.0.1 GET /nowhere?x=%0aforged 400 ") != std::string::npos);
}

TEST_CASE("an address to listen on is numeric and has a port") {
  CHECK(parse_listen("127.0.0.1:8080").text() == "127.0.0.1:8080");
  CHECK(parse_listen("[::1]:0").text() == "[::1]:0");
  CHECK(parse_listen("0.0.0.0:65535").port == 65535);
  for (const std::string text :
       {"", ":", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:80x",
        "localhost:80", "::1:80", "[127.0.0.1]:80", "[::1]", "[]:80", " 127.0.0.1:80"}) {
    CAPTURE(text);
    CHECK_REFUSED(parse_listen(text), Usage, "not an address");
  }
}

TEST_CASE("a port that somebody else has is refused by name") {
  Live live({});
  ServerOptions options;
  options.listen.port = live.port;
  CHECK_REFUSED(Server({}, options), Io, "127.0.0.1:" + std::to_string(live.port));
}
