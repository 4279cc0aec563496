// SPDX-License-Identifier: Apache-2.0
// rendezvous.hpp: ranks that meet, and what can prevent it: late, twice, another world, no store, no name.
// Ranks are threads that meet over TCP on loopback, as processes do, with time-outs of at most seconds.
// Every failure is checked on all ranks, since a rank that is not at fault must not wait for its time-out.
#include "tests/support/ranks.hpp"

#include <sealift/train/launch/rendezvous.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

using namespace sealift::train;

namespace {

using std::chrono::milliseconds;

Launch launch_of(std::int64_t rank, std::int64_t world_size, std::int64_t port, bool agent_store = true) {
  return {.rank = rank,
          .world_size = world_size,
          .master_addr = "127.0.0.1",
          .master_port = port,
          .agent_store = agent_store};
}

/// A free port, for ranks that serve their own store.
std::int64_t free_port() {
  return serve_store(0)->getPort();
}

/// Connects as each of `launches` at the same time; returns the text of each error, empty without one.
/// A world lives until all have returned, since rank 0's store ends with it.
std::vector<std::string> connect_all(const std::vector<Launch>& launches, milliseconds timeout) {
  std::vector<std::string> errors(launches.size());
  std::vector<World> worlds(launches.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        worlds[i] = connect(launches[i], timeout);
      } catch (const c10::Error& error) {
        errors[i] = error.what_without_backtrace();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The addresses at which this process listens on `port`, as the kernel writes them.
std::set<std::string> listening_on(std::int64_t port) {
  std::set<std::string> found;
  char wanted[8];
  std::snprintf(wanted, sizeof wanted, ":%04X", static_cast<unsigned>(port));
  for (const char* file : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, address, other, state;
      words >> number >> address >> other >> state;
      if (state == "0A" && address.ends_with(wanted)) found.insert(address.substr(0, address.size() - 5));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("the store of a job on one host listens on the loopback alone, and that of several hosts on every address") {
  const auto one = serve_store(0);
  CHECK(listening_on(one->getPort()) == std::set<std::string>{"0100007F"});
  const auto by_name = serve_store(0, "localhost");
  CHECK(listening_on(by_name->getPort()) == std::set<std::string>{"0100007F"});
  const auto many = serve_store(0, "192.0.2.1");
  const auto open = listening_on(many->getPort());
  CHECK((open.contains("00000000") || open.contains(std::string(32, '0'))));
  const auto port = free_port();
  std::set<std::string> served;
  std::vector<std::thread> ranks;
  for (const std::int64_t rank : {0, 1})
    ranks.emplace_back([&, rank] {
      const World world = connect(launch_of(rank, 2, port, /*agent_store=*/false), std::chrono::seconds(20));
      if (rank == 0) served = listening_on(port);
      world.store->set("left/" + std::to_string(rank), std::vector<std::uint8_t>{1});
      world.store->wait({"left/0", "left/1"});
      std::this_thread::sleep_for(milliseconds(rank == 0 ? 200 : 0));  // its store ends with it
    });
  for (auto& rank : ranks) rank.join();
  CHECK(served == std::set<std::string>{"0100007F"});
}

TEST_CASE("the address to listen on is the one from which the master is reached, or that of the interface named") {
  CHECK(local_address_towards("127.0.0.1", 29500) == "127.0.0.1");
  CHECK_THROWS_WITH(local_address_towards("no.such.host.invalid", 29500), doctest::Contains("'no.such.host.invalid'"));
  CHECK(address_of_interface("lo") == "127.0.0.1");
  CHECK_THROWS_WITH(address_of_interface("nic7"), doctest::Contains("GLOO_SOCKET_IFNAME is 'nic7'"));
  CHECK_THROWS_WITH(address_of_interface("nic7"), doctest::Contains("lo 127.0.0.1"));
  CHECK(address_of_interfaces("lo,lo") == "127.0.0.1");
  CHECK_THROWS_WITH(address_of_interfaces("lo,nic7"), doctest::Contains("GLOO_SOCKET_IFNAME is 'nic7'"));
}

TEST_CASE("ranks meet at a store that the launcher serves, and attempts do not mix") {
  const auto agent = serve_store(0);
  for (const std::string attempt : {"0", "1"}) {
    std::vector<std::thread> ranks;
    std::array<std::int64_t, 2> sums{};
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        auto launch = launch_of(rank, 2, agent->getPort());
        launch.attempt = attempt;
        launch.interface = "lo";
        auto groups = make_groups(connect(launch, std::chrono::seconds(20)), {2, 1});
        auto value = torch::tensor({rank + 1}, torch::kInt64);
        groups.world.all_reduce(value).wait();
        sums[static_cast<std::size_t>(rank)] = value.item<std::int64_t>();
      });
    }
    for (auto& rank : ranks) rank.join();
    CHECK(sums == std::array<std::int64_t, 2>{3, 3});
  }
}

TEST_CASE("ranks whose launchers count another number of restarts meet, whoever comes first") {
  const auto agent = serve_store(0);
  const auto with_count = [&](std::int64_t rank, const std::string& count) {
    auto launch = launch_of(rank, 3, agent->getPort());
    launch.attempt = count;
    return launch;
  };
  std::string early_error = "not connected";
  std::thread early([&] { early_error = connect_all({with_count(0, "2")}, milliseconds(20000))[0]; });
  agent->wait({"sealift/attempt_2/meeting/arrived"}, std::chrono::seconds(20));
  const auto start = std::chrono::steady_clock::now();
  CHECK(connect_all({with_count(1, "10"), with_count(2, "0")}, milliseconds(20000)) == std::vector<std::string>(2));
  early.join();
  CHECK(early_error.empty());
  CHECK(seconds_since(start) < 10);
}

TEST_CASE("ranks that were started again without a count meet at the next attempt, whoever comes first") {
  const auto ended = fork();
  if (ended == 0) _exit(0);
  waitpid(ended, nullptr, 0);
  const auto own = rendezvous::own_name();
  const auto gone = own.substr(0, own.rfind(' ') + 1) + std::to_string(ended) + "#1";
  CHECK(rendezvous::has_ended(gone));
  CHECK_FALSE(rendezvous::has_ended(own + "#1"));
  CHECK_FALSE(rendezvous::has_ended("other.host process " + std::to_string(ended) + "#1"));
  for (const std::string other : {"0", "1"}) {  // torchrun counted the restart on the other host, or on none
    CAPTURE(other);
    const auto agent = serve_store(0);
    const auto set = [&](const std::string& key, const std::string& text) {
      static_cast<c10d::Store&>(*agent).set("sealift/" + key, text);
    };
    set("attempt", "0");
    set("attempt_0/meeting/world_size", "2 on rank 0");
    set("attempt_0/meeting/rank/0", gone);
    set("attempt_0/meeting/rank/1", gone);
    set("attempt_0/meeting/verdict", rendezvous::kGood);
    const auto first = launch_of(0, 2, agent->getPort());
    auto second = launch_of(1, 2, agent->getPort());
    second.attempt = other;
    CHECK(connect_all({first, second}, milliseconds(20000)) == std::vector<std::string>(2));
    CHECK(static_cast<c10d::Store&>(*agent).get_to_str("sealift/attempt") == "1");
  }
}

TEST_CASE("hosts that offer one address, and ranks that offer what only their host reaches, are named to all") {
  const auto offers = [](const std::vector<rendezvous::Offer>& all) {
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::string> errors(all.size());
    std::vector<std::thread> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      ranks.emplace_back([&, rank] {
        const auto deadline = rendezvous::Clock::now() + std::chrono::seconds(20);
        const Launch launch{.rank = static_cast<std::int64_t>(rank),
                            .world_size = static_cast<std::int64_t>(all.size())};
        try {
          rendezvous::meet(*store, launch, all[rank], deadline, milliseconds(20000), rank == 0);
          errors[rank] = rendezvous::reached_address(*store, all[rank], 1);
        } catch (const c10::Error& error) {
          errors[rank] = error.what_without_backtrace();
        }
      });
    }
    for (auto& rank : ranks) rank.join();
    return errors;
  };
  using rendezvous::Offer;
  const auto start = std::chrono::steady_clock::now();
  for (const auto& error : offers({{.address = "172.17.0.1", .interface = "docker0", .network = "a"},
                                   {.address = "172.17.0.1", .interface = "docker0", .network = "b"},
                                   {.address = "10.0.0.3", .network = "c"}})) {
    CHECK_MESSAGE(says(error, "are on different hosts and offer the others one address, 172.17.0.1"), error);
    CHECK_MESSAGE(says(error, "GLOO_SOCKET_IFNAME 'docker0'"), error);
    CHECK_MESSAGE((says(error, "rank 0, ") && says(error, "rank 1, ")), error);
  }
  for (const auto& error :
       offers({{.address = "127.0.0.1", .interface = "lo", .network = "a"}, {.address = "10.0.0.2", .network = "b"}}))
    CHECK_MESSAGE(says(error, "rank 0, "), error);
  for (const auto& error : offers({{.address = "127.0.0.1", .network = "a"}, {.address = "127.0.0.1", .network = "b"}}))
    CHECK_MESSAGE(says(error, "MASTER_ADDR leads each to its own loopback"), error);
  CHECK(seconds_since(start) < 10);
  // Two ranks of one host share its address, and the loopback where all are there.
  const std::vector<Offer> together = {{.address = "10.0.0.1", .network = "a"},
                                       {.address = "10.0.0.1", .network = "a"}};
  CHECK(offers(together) == std::vector<std::string>{"10.0.0.1", "10.0.0.1"});
  const std::vector<Offer> inside = {{.address = "127.0.0.1", .network = "a"},
                                     {.address = "127.0.1.1", .network = "a"}};
  CHECK(offers(inside) == std::vector<std::string>{"127.0.0.1", "127.0.1.1"});
  // Where the kernel does not tell networks apart, nothing is said.
  const std::vector<Offer> unknown = {{.address = "172.17.0.1"}, {.address = "172.17.0.1"}};
  CHECK(offers(unknown) == std::vector<std::string>{"172.17.0.1", "172.17.0.1"});
  // A host whose own name is of its loopback offers the address towards another host: here the loopback again, since a
  // test has no other.
  const std::vector<Offer> named = {{.address = "127.0.1.1", .network = "a"}, {.address = "127.9.9.9", .network = "b"}};
  CHECK(says(offers(named)[0], "MASTER_ADDR leads each to its own loopback"));
}

TEST_CASE("ranks of one machine share its processors, by what each may run on") {
  std::vector<World> worlds(2);
  const auto agent = serve_store(0);
  std::vector<std::thread> ranks;
  for (const std::int64_t rank : {0, 1}) {
    ranks.emplace_back(
        [&, rank] { worlds[static_cast<std::size_t>(rank)] = connect(launch_of(rank, 2, agent->getPort())); });
  }
  for (auto& rank : ranks) rank.join();
  const auto alone = connect({}).processors;
  CHECK(alone >= 0.01);
  for (const auto& world : worlds) CHECK(world.processors == doctest::Approx(alone / 2));
}

TEST_CASE("ranks meet at a store that rank 0 serves, in whichever order they come") {
  const auto port = free_port();
  const auto errors = connect_all(
      {launch_of(2, 3, port, false), launch_of(1, 3, port, false), launch_of(0, 3, port, false)}, milliseconds(20000));
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a rank that is late is waited for") {
  const auto agent = serve_store(0);
  std::string error = "not connected";
  std::thread early([&] { error = connect_all({launch_of(0, 2, agent->getPort())}, milliseconds(20000))[0]; });
  c10d::PrefixStore store("sealift/attempt_0", agent);
  store.wait({"meeting/arrived"}, std::chrono::seconds(20));
  CHECK(connect_all({launch_of(1, 2, agent->getPort())}, milliseconds(20000))[0].empty());
  early.join();
  CHECK(error.empty());
}

TEST_CASE("ranks that do not come are named to every rank that did, after the time-out") {
  for (const bool agent_store : {true, false}) {
    CAPTURE(agent_store);
    const auto agent = agent_store ? serve_store(0) : nullptr;
    const auto port = agent ? agent->getPort() : free_port();
    const auto start = std::chrono::steady_clock::now();
    const auto errors =
        connect_all({launch_of(0, 4, port, agent_store), launch_of(2, 4, port, agent_store)}, milliseconds(2500));
    CHECK(seconds_since(start) > 2.4);
    CHECK(seconds_since(start) < 4.5);
    for (const auto& error : errors) CHECK_MESSAGE(says(error, "ranks 1, 3 of 4 did not come within"), error);
  }
}

TEST_CASE("two processes with one rank are told at once who they are, and so are those that wait") {
  const auto agent = serve_store(0);
  const auto port = agent->getPort();
  const auto start = std::chrono::steady_clock::now();
  const auto errors =
      connect_all({launch_of(0, 3, port), launch_of(1, 3, port), launch_of(1, 3, port)}, milliseconds(20000));
  CHECK(seconds_since(start) < 10);
  for (const auto& error : errors) {
    CHECK_MESSAGE(says(error, "rank 1 came twice: "), error);
    CHECK_MESSAGE(says(error, c10::str("process ", getpid(), "; give every process its own RANK")), error);
  }
}

TEST_CASE("a process that comes twice after all have met is refused, and does not disturb them") {
  const auto agent = serve_store(0);
  const auto port = agent->getPort();
  CHECK(connect_all({launch_of(0, 2, port), launch_of(1, 2, port)}, milliseconds(20000)) ==
        std::vector<std::string>(2));
  CHECK(says(connect_all({launch_of(1, 2, port)}, milliseconds(20000))[0], "rank 1 came twice"));
}

TEST_CASE("ranks that disagree on the world size are told both sizes and who says so") {
  const auto agent = serve_store(0);
  const auto port = agent->getPort();
  const auto start = std::chrono::steady_clock::now();
  const auto errors = connect_all({launch_of(0, 2, port), launch_of(1, 3, port)}, milliseconds(20000));
  CHECK(seconds_since(start) < 10);
  for (const auto& error : errors) {
    CHECK_MESSAGE(says(error, "WORLD_SIZE is "), error);
    CHECK_MESSAGE(says(error, "2 on rank 0"), error);
    CHECK_MESSAGE(says(error, "3 on rank 1"), error);
    CHECK_MESSAGE(says(error, "give every rank the same"), error);
  }
}

TEST_CASE("ranks that wait are told when the store goes away, as when rank 0's host is lost") {
  auto agent = serve_store(0);
  const auto port = agent->getPort();
  const auto start = std::chrono::steady_clock::now();
  std::string error;
  std::thread waiting([&] { error = connect_all({launch_of(1, 2, port)}, milliseconds(20000))[0]; });
  agent->wait({"sealift/attempt_0/meeting/arrived"}, std::chrono::seconds(20));
  agent.reset();
  waiting.join();
  CHECK(seconds_since(start) < 10);
  CHECK_MESSAGE(says(error, c10::str("the store at 127.0.0.1:", port, " went away while rank 1 waited")), error);
}

TEST_CASE("a port that is taken is refused at once by rank 0, with the port and a remedy") {
  const auto other = serve_store(0);
  const auto start = std::chrono::steady_clock::now();
  const auto text = connect_all({launch_of(0, 2, other->getPort(), false)}, milliseconds(20000))[0];
  CHECK(seconds_since(start) < 10);
  CHECK_MESSAGE(says(text, c10::str("port ", other->getPort(), " is taken on this host")), text);
  CHECK_MESSAGE(says(text, "another MASTER_PORT"), text);
  CHECK_THROWS_WITH(serve_store(other->getPort()), doctest::Contains("is taken on this host"));
}

TEST_CASE("a store that nobody serves is given up on after the time-out, with its address") {
  const auto port = free_port();
  const auto start = std::chrono::steady_clock::now();
  const auto text = connect_all({launch_of(1, 2, port, false)}, milliseconds(1500))[0];
  CHECK(seconds_since(start) > 1.4);
  CHECK(seconds_since(start) < 3);
  CHECK_MESSAGE(says(text, c10::str("no store answers at 127.0.0.1:", port, " within 1.5 s")), text);
}

TEST_CASE("a name that does not resolve is asked for until the time-out, then refused by name") {
  auto launch = launch_of(1, 2, 29500, false);
  launch.master_addr = "no.such.host.invalid";
  const auto start = std::chrono::steady_clock::now();
  const auto text = connect_all({launch}, milliseconds(1000))[0];
  CHECK(seconds_since(start) > 0.9);
  CHECK_MESSAGE(says(text, "MASTER_ADDR is 'no.such.host.invalid', which does not resolve within 1 s"), text);
  CHECK_MESSAGE(says(text, "use a numeric address"), text);
}

TEST_CASE("a launch that stands for a host is no rank") {
  CHECK_THROWS_WITH(connect({.world_size = 2, .local_world_size = 2, .is_node = true}),
                    doctest::Contains("this process is to start 2 ranks"));
}
