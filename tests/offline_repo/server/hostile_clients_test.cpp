// SPDX-License-Identifier: Apache-2.0
// Clients that want another one's request read wrongly, or nobody served at all: over real sockets, byte by byte.
#include "offline_repo/requests/request_head.hpp"
#include "offline_repo/server/client_address.hpp"
#include "tests/offline_repo/live.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;

namespace {

constexpr char kHalf[] = "GET /simple/ HTTP/1.1\r\nHost:";

ServerOptions few(std::size_t connections, std::size_t per_client) {
  ServerOptions options;
  options.max_connections = connections;
  options.max_per_client = per_client;
  return options;
}

TinyBundle with_big_wheel() {
  return {.chunk_size = 1 << 20, .items = {wheel_item(big_wheel(20'000'000))}};
}

}  // namespace

TEST_CASE("a request whose end two readers could see in two places gets 400, and nothing behind it is a request") {
  Live live({});
  const std::string smuggled = request_text("/simple/", "Connection: close\r\n");
  const std::string size = std::to_string(smuggled.size());
  const std::string rows[] = {
      "Transfer-Encoding: chunked\r\n",
      "Transfer-Encoding: gzip\r\n",
      "Transfer-Encoding: identity\r\n",
      "transfer-ENCODING:\txchunked\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding:\r\n",
      "Transfer-Encoding: gzip\r\nContent-Length: 0\r\n",
      "Transfer-Encoding : chunked\r\n",
      "Content-Length: " + size + "\r\n",
      "Content-Length: 0\r\nContent-Length: " + size + "\r\n",
      "Content-Length: 0\r\nContent-Length: 0\r\n",
      "Content-Length: 0, " + size + "\r\n",
      "Content-Length: +0\r\n",
      "Content-Length: 0x0\r\n",
      "Content-Length:\r\n",
      "Content-Length : " + size + "\r\n",
      "X: a\r\n b\r\n",                                 // folded
      "X: a\r\n\tTransfer-Encoding: chunked\r\n",       //
      " X: a\r\n",                                      //
      "X: a\nTransfer-Encoding: chunked\r\n",           // a line break of its own
      "X: a\rTransfer-Encoding: chunked\r\n",           //
      "X: a\n\nGET /simple/ HTTP/1.1\nHost: test\r\n",  //
      "no colon\r\n",
      ": no name\r\n",
      std::string("X: a\0b\r\n", 8),
  };
  for (const std::string& headers : rows)
    for (const char* method : {"GET", "HEAD"}) {
      CAPTURE(headers);
      RawClient client(live.port);
      client.send(std::string(method) + " / HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n" + smuggled);
      CHECK(client.receive(std::string(method) == "HEAD").status == 400);
      CHECK(client.ended());
    }
  live.finish();
  CHECK(live.logged().find(" /simple/ 200 ") == std::string::npos);  // nothing smuggled was answered
}

TEST_CASE("a length of nothing is a length, and what other methods would send is not read") {
  Live live({});
  RawClient client(live.port);
  client.send(request_text("/simple/", "Content-Length: 0\r\n") + request_text("/"));
  CHECK(client.receive().status == 200);
  CHECK(client.receive().status == 200);
  for (const char* headers : {"Transfer-Encoding: chunked\r\n", "Content-Length: 3\r\nContent-Length: 5\r\n"}) {
    RawClient post(live.port);
    post.send(request_text("/simple/", headers, "POST") + "abc" + request_text("/simple/"));
    CHECK(post.receive().status == 400);
    CHECK(post.ended());
  }
}

TEST_CASE("the head of a request is one end, lines of their own, and names") {
  const auto fault = [](std::string_view text) { return fault_of_head(text); };
  CHECK(fault("GET / HTTP/1.1\r\nHost: a\r\n\r\n").empty());
  CHECK(fault("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n").empty());  // refused by its method
  for (const std::string_view text : {"", "\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n",
                                      "GET / HTTP/1.1\n\n", "GET / HTTP/1.1\r\n\r\n\r\n", "GET /\x7f HTTP/1.1\r\n\r\n"})
    CHECK_FALSE(fault(text).empty());
}

TEST_CASE("half-open requests and silent clients make room for those who ask, the longest waiting first") {
  Live live({}, few(8, 8));
  std::vector<std::unique_ptr<RawClient>> attackers;
  for (int i = 0; i < 40; ++i) {
    attackers.push_back(std::make_unique<RawClient>(live.port, 0x7f000001u + static_cast<unsigned>(i) % 3));
    if (i % 2 == 0) attackers.back()->send(kHalf);
  }
  for (int i = 0; i < 5; ++i) CHECK(fetch(live.port, "/simple/").status == 200);
  CHECK(attackers.front()->ended());
  live.finish();
  CHECK(live.logged().find(" - - 0, it waited longest, and made room for another connection\n") != std::string::npos);
}

TEST_CASE("an idle connection makes room, and an answer under way does not") {
  SUBCASE("idle") {
    Live live({}, few(1, 1));
    RawClient idle(live.port);
    idle.send(request_text("/simple/"));
    CHECK(idle.receive().status == 200);
    CHECK(fetch(live.port, "/simple/").status == 200);
    CHECK(idle.ended());
  }
  SUBCASE("idle, although the server has not noticed yet that its answer is out") {
    ServerOptions options = few(1, 1);
    options.on_request = [](const std::string&) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
    Live live({}, std::move(options));
    RawClient idle(live.port);
    idle.send(request_text("/simple/"));
    CHECK(idle.receive().status == 200);
    CHECK(fetch(live.port, "/simple/").status == 200);
    CHECK(idle.ended());
  }
  SUBCASE("an answer") {
    Live live(with_big_wheel(), few(1, 1));
    RawClient busy(live.port);
    busy.send(request_text(live.target("big")));
    busy.await_answer();
    RawClient next(live.port, 0x7f000002);
    next.send(request_text("/simple/"));
    const RawResponse whole = busy.receive();
    CHECK(whole.complete);
    CHECK(whole.body.size() > 20'000'000);
    CHECK(next.receive().status == 200);
  }
}

TEST_CASE("one client has at most its share once half of all is taken, and others are served meanwhile") {
  ServerOptions options = few(8, 2);
  options.admin_listen = ListenAddress{.host = "127.0.0.1", .port = 0};
  Live live(with_big_wheel(), std::move(options));
  std::vector<std::unique_ptr<RawClient>> greedy;
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(std::make_unique<RawClient>(live.port, 0x7f000002));
    greedy.back()->send(request_text(live.target("big")));
    greedy.back()->await_answer();  // and takes no more of it for now
  }
  for (int i = 0; i < 20; ++i) {
    RawClient more(live.port, 0x7f000002);
    more.send(request_text("/simple/"));
    const RawResponse answer = more.receive();
    CHECK(answer.status == 503);
    CHECK(answer.headers.at("retry-after") == "1");
    CHECK(answer.body.find("as many connections here as it may while others want some") != std::string::npos);
    CHECK(more.ended());
  }
  live.await_log("127.0.0.2 GET /simple/ 503 ");
  CHECK(fetch(live.port, "/simple/").status == 200);
  const std::string metrics = fetch(live.server->admin_address()->port, "/metrics").body;
  CHECK(metrics.find("\nsealift_connections_refused_total 20\n") != std::string::npos);
  for (const std::unique_ptr<RawClient>& one : greedy) CHECK(one->receive().complete);
}

TEST_CASE("of more clients than can be turned away at a time, the rest is ended without an answer and logged") {
  Live live(with_big_wheel(), few(2, 1));
  RawClient busy(live.port, 0x7f000002);
  busy.send(request_text(live.target("big")));
  busy.await_answer();
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 65; ++i) silent.push_back(std::make_unique<RawClient>(live.port, 0x7f000002));
  live.await_log("127.0.0.2 - - 0, turned away without an answer");
  CHECK(silent.back()->ended());
  CHECK(fetch(live.port, "/simple/").status == 200);
}

TEST_CASE("an address has what nobody else asks for: a hundred downloads at a time lose none") {
  Live live({.chunk_size = 1 << 20, .items = {wheel_item(big_wheel(8'000'000))}});
  std::vector<std::unique_ptr<RawClient>> ranks;
  for (int i = 0; i < 100; ++i) {
    ranks.push_back(std::make_unique<RawClient>(live.port));
    ranks.back()->send(request_text(live.target("big"), "Connection: close\r\n"));
  }
  for (const std::unique_ptr<RawClient>& one : ranks) one->await_answer();
  for (const std::unique_ptr<RawClient>& one : ranks) CHECK(one->receive().complete);
}

TEST_CASE("a header that comes a byte at a time has one deadline for all of it") {
  ServerOptions options;
  options.request_timeout = std::chrono::milliseconds(300);
  Live live({}, options);
  RawClient slow(live.port);
  const auto begin = std::chrono::steady_clock::now();
  std::jthread drip([&](const std::stop_token& stop) {
    slow.send("GET / HTTP/1.1\r\nX: ");
    while (!stop.stop_requested()) slow.send("x"), std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  CHECK(slow.ended());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("a /64 of IPv6 counts as one client, and an IPv4 address in IPv6 as itself") {
  const auto client = [](const char* text) { return client_of(boost::asio::ip::make_address(text)); };
  CHECK(client("2001:db8::1") == client("2001:db8::ffff:1"));
  CHECK(client("2001:db8::1") != client("2001:db8:0:1::1"));
  CHECK(client("192.0.2.1") != client("192.0.2.2"));
  CHECK(client("::ffff:192.0.2.1") == client("192.0.2.1"));
}
