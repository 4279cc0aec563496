// SPDX-License-Identifier: Apache-2.0
// What answers cost: the processor's time goes into system calls, waits and hand-overs between threads, and their count
// says the same on a busy machine.
#include <fstream>
#include <thread>
#include <vector>

#include "tests/offline_repo/live.hpp"
#include "tests/support/left_out.hpp"

using namespace sealift::bundle;
using namespace sealift::test;
using namespace sealift::offline_repo;

namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

// What a system lets a connection hold unsent at most; less than the server asks for means more calls.
std::uint64_t most_unsent() {
  std::uint64_t least = 0, normal = 0, most = 0;
  std::ifstream("/proc/sys/net/ipv4/tcp_wmem") >> least >> normal >> most;
  return most;
}

}  // namespace

TEST_CASE("a large wheel takes at most three calls, waits and hand-overs a mebibyte, and as many as it takes at all") {
  if (most_unsent() < 4 * kMebibyte) return left_out("net.ipv4.tcp_wmem is below 4 MiB, so calls are shorter");
  Live live({.chunk_size = 4 << 20, .items = {wheel_item(big_wheel(48 * kMebibyte))}});
  const std::size_t size = fetch(live.port, live.target("big")).body.size();  // hashed now, and in the cache
  REQUIRE(size > 48 * kMebibyte);
  const std::uint64_t before = live.server->send_steps();
  constexpr std::uint64_t kDownloads = 4;
  {
    std::vector<std::jthread> clients;
    for (std::uint64_t i = 0; i < kDownloads; ++i)
      clients.emplace_back([&] { CHECK(fetch(live.port, live.target("big")).body.size() == size); });
  }
  const std::uint64_t steps = live.server->send_steps() - before, mebibytes = kDownloads * size / kMebibyte;
  MESSAGE(steps << " for " << mebibytes << " MiB");
  CHECK(steps >= mebibytes);  // a call has at most one
  CHECK(steps <= 3 * mebibytes);
}

TEST_CASE(
    "a page, METADATA and a small range each leave in one call with their header, from the thread that read them") {
  Live live({});
  RawClient client(live.port);
  const std::string requests[] = {request_text("/simple/demo/"), request_text(live.target("demo") + ".metadata"),
                                  request_text(live.target("demo"), "Range: bytes=0-9\r\n"),
                                  request_text("/simple/", "", "HEAD"), request_text("/nowhere")};
  const auto ask_all = [&] {
    for (const std::string& request : requests) {
      client.send(request);
      CHECK(client.receive(request.starts_with("HEAD")).status > 0);
    }
  };
  ask_all();  // the chunk is hashed now, and in the cache
  const std::uint64_t before = live.server->send_steps();
  for (int i = 0; i < 20; ++i) ask_all();
  CHECK(live.server->send_steps() - before == 20 * std::size(requests));
}
