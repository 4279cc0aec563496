// SPDX-License-Identifier: Apache-2.0
// Judging of collectives, fed with made measurements: who sent wrong data, which link is slow or lossy.
#include "verify/communication/judge.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/communication/host_drops.hpp"
#include "verify/communication/nccl_log.hpp"
#include "verify/communication/plan.hpp"
#include "verify/communication/tcp_counts.hpp"

#include "tests/verify/communication/made_ranks.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace {

using namespace sealift::verify;
using namespace sealift::verify::made;
using Json = nlohmann::json;
using Names = std::vector<std::string>;

/// One wrong element: seen by, sent by (-1: a sum).
using Wrong = std::pair<std::int64_t, std::int64_t>;

Check right(std::int64_t ranks, const std::vector<Wrong>& wrong) {
  std::vector<Measured> all;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Json faults = Json::array();
    for (const auto& [seen_by, from] : wrong) {
      if (seen_by != rank) continue;
      faults.push_back({{"group", "world"},
                        {"ranks", ranks},
                        {"op", from < 0 ? "all_reduce" : "all_gather"},
                        {"dtype", "bf16"},
                        {"size", 1023},
                        {"index", 17},
                        {"from", from},
                        {"got", 3},
                        {"expected", 4}});
    }
    all.push_back(rank_with(
        rank, {{"cases", 10}, {"facts", Json::array({Json::array({"engine", "Gloo"})})}, {"faults", faults}}));
  }
  Check check;
  judge_right(all, check);
  return check;
}

TEST_CASE("right: nothing wrong passes and counts; the facts of all ranks are said once") {
  const auto check = right(4, {});
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.figures[0].value == 40);
  CHECK(check.facts.size() == 1);
}

TEST_CASE("right: a wrong element is said with all its digits and the bits that differ, also one that is no number") {
  Json fault{{"group", "world"}, {"ranks", 2}, {"op", "all_reduce"},  {"dtype", "fp32"}, {"size", 8},
             {"index", 0},       {"from", -1}, {"got", 1000001000.0}, {"expected", 1e9}, {"bits", "0x00000010"}};
  const auto said = [&] {
    Check check;
    judge_right({rank_with(0, {{"cases", 1}, {"facts", Json::array()}, {"faults", {fault}}})}, check);
    return check.reason;
  };
  CHECK(said().en.ends_with("element 0 is 1000001000, expected 1000000000, other bits 0x00000010"));
  CHECK(said().zh.ends_with("第 0 个元素为 1000001000，应为 1000000000，不同的位 0x00000010"));
  fault["got"] = "nan";
  CHECK(said().en.find("element 0 is nan, expected 1000000000") != std::string::npos);
}

TEST_CASE("right: whose data several ranks have wrong sends it; who has several ranks' data wrong receives it so") {
  const auto sender = right(4, {{0, 2}, {1, 2}, {3, 2}, {0, -1}, {1, -1}, {2, -1}, {3, -1}});
  CHECK(english(sender.at_fault) == Names{named(2)});
  CHECK(sender.reason.en.find(named(2) + ": sends wrong data to several ranks: all_gather of bf16 x 1023 over world, "
                                         "element 17 is 3, expected 4") == 0);
  const auto receiver = right(4, {{1, 0}, {1, 2}, {1, 3}});
  CHECK(english(receiver.at_fault) == Names{named(1)});
  CHECK(receiver.reason.en.find("has wrong data from several ranks") != std::string::npos);
}

TEST_CASE("right: of two ranks either end may be it, so both are named; a wrong sum on one rank is its own") {
  CHECK(english(right(2, {{0, 1}}).at_fault) == Names{named(0), named(1)});
  const auto one = right(3, {{2, -1}});
  CHECK(english(one.at_fault) == Names{named(2)});
  CHECK(one.reason.en.find("has a wrong sum where others have the right one") != std::string::npos);
  CHECK(right(3, {{0, -1}, {1, -1}, {2, -1}}).at_fault.size() == 3);
}

using Link = std::pair<std::int64_t, std::int64_t>;

/// A world of nodes, one rank each; `slow`: pairs that take ten times as long; `packets`: as they are measured.
Check linked(std::int64_t nodes, const std::set<Link>& slow, const Json& expected = Json::object(),
             const std::vector<Json>& packets = {}) {
  Names names;
  for (std::int64_t node = 0; node < nodes; ++node) names.push_back("host" + std::to_string(node));
  std::vector<Measured> all;
  for (std::int64_t rank = 0; rank < nodes; ++rank) {
    Json pairs = Json::array();
    for (const auto& round : rounds_of_pairs(nodes, 31)) {
      for (const auto& [one, other] : round) {
        if (one != rank && other != rank) continue;
        const double seconds = slow.contains({one, other}) ? 1.0 : 0.1;
        pairs.push_back({one, other, 1e9, seconds, 2 * seconds});
      }
    }
    Json own = Json::array();
    for (const auto& way : packets) {
      if (way.at(0) == rank) own.push_back(way);
    }
    all.push_back(rank_with(rank, {{"cpu", true},
                                   {"hosts", nodes},
                                   {"nodes", names},
                                   {"facts", Json::array()},
                                   {"pairs", pairs},
                                   {"packets", own},
                                   {"faults", Json::array()}}));
  }
  Check check;
  judge_pairs(all, expected, check);
  return check;
}

TEST_CASE("pairs: a slow link is named as a pair, a node that is slow with everyone as a node") {
  CHECK(linked(4, {}).outcome == Outcome::Pass);
  CHECK(english(linked(4, {{1, 3}}).at_fault) == Names{"host1 - host3"});
  CHECK(english(linked(4, {{0, 2}, {1, 2}, {2, 3}}).at_fault) == Names{"host2"});
  CHECK(english(linked(3, {{0, 1}, {0, 2}}).at_fault) == Names{"host0"});
  CHECK(english(linked(3, {{0, 1}}).at_fault) == Names{"host0 - host1"});
  CHECK(english(linked(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}, {0, 1}}).at_fault) == Names{"host2", "host0 - host1"});
}

TEST_CASE("pairs: the matrix is symmetric with an empty diagonal, and two nodes are held to what the site expects") {
  const auto check = linked(2, {{0, 1}}, {{"communication", {{"at_least_gb", {{"pair", 5}}}}}});
  const auto& matrix = check.matrices.at(0);
  CHECK(matrix.values == std::vector<std::optional<double>>{{}, 1.0, 1.0, {}});
  CHECK(english(check.at_fault) == Names{"host0 - host1"});
  CHECK(english(linked(2, {}, {{"communication", {{"at_least_gb", 5}}}}).at_fault) == Names{"site.toml"});
  CHECK(linked(2, {{0, 1}}).outcome == Outcome::Pass);  // nothing to compare it with
}

/// Each way between `nodes` nodes: 10,000 packets in 5 exchanges, of which `lost` on the ways of `links`.
std::vector<Json> packets_of(std::int64_t nodes, const std::set<Link>& links, std::int64_t lost, std::int64_t losing) {
  std::vector<Json> ways;
  for (std::int64_t from = 0; from < nodes; ++from) {
    for (std::int64_t to = 0; to < nodes; ++to) {
      if (from == to) continue;
      const bool lossy = links.contains({from, to});
      ways.push_back({from, to, 10000, lossy ? lost : 0, lossy ? losing : 0, 5, 0});
    }
  }
  return ways;
}

TEST_CASE("pairs: a link that loses packets is named though it is as fast as the others, and so is a lossy node") {
  const auto lossy = [](std::int64_t nodes, const std::set<Link>& links) {
    return linked(nodes, {}, Json::object(), packets_of(nodes, links, 100, 5));
  };
  const auto two = lossy(2, {{1, 0}});
  CHECK(english(two.at_fault) == Names{"host0 - host1"});
  CHECK(two.reason.en == "host0 - host1: lose 1 % of 10000 packets from host1 to host0, in 5 of 5 exchanges");
  CHECK(two.reason.zh.find("从 host1 到 host0 的 10000 个数据包丢失 1 %") != std::string::npos);
  CHECK(two.matrices.at(1).values == std::vector<std::optional<double>>{{}, 0.0, 1.0, {}});
  CHECK(english(lossy(4, {{1, 3}, {3, 1}}).at_fault) == Names{"host1 - host3"});
  auto both = packets_of(2, {{0, 1}, {1, 0}}, 100, 5);
  both.back().at(3) = 500;
  CHECK(linked(2, {}, Json::object(), both).reason.en.find("lose 5 % of 10000 packets from host1 to host0") !=
        std::string::npos);
  const auto node = lossy(4, {{0, 2}, {1, 2}, {3, 2}});
  CHECK(english(node.at_fault) == Names{"host2"});
  CHECK(node.reason.en == "host2: loses packets with 3 of 3 other nodes, up to 1 % of them");
  CHECK(english(lossy(5, {{2, 0}, {2, 1}, {3, 2}, {2, 4}, {0, 1}}).at_fault) == Names{"host2", "host0 - host1"});
  CHECK(english(lossy(3, {{0, 1}, {1, 2}, {2, 0}}).at_fault) == Names{"host0", "host1", "host2"});
}

TEST_CASE("pairs: some packets lost, or many in one burst, are a network's everyday; it is said what was counted") {
  const auto lost = [](std::int64_t packets, std::int64_t losing) {
    return linked(2, {}, Json::object(), packets_of(2, {{0, 1}}, packets, losing));
  };
  CHECK(lost(19, 5).outcome == Outcome::Pass);   // below two thousandths
  CHECK(lost(500, 2).outcome == Outcome::Pass);  // one burst at the end of an exchange and into the next
  CHECK(lost(20, 3).outcome == Outcome::Fail);
  const auto clean = lost(0, 0);
  CHECK(clean.reason.en.find("; no link loses packets") != std::string::npos);
  CHECK(clean.matrices.size() == 1);
  const auto counted = std::find_if(clean.figures.begin(), clean.figures.end(),
                                    [](const Figure& figure) { return figure.name.en == "packets counted"; });
  REQUIRE(counted != clean.figures.end());
  CHECK(counted->value == 20000);
  CHECK(linked(2, {}).reason.en.find("; lost packets were not counted") != std::string::npos);
}

TEST_CASE("pairs: packets that a host's own kernel dropped accuse no link; more than it dropped is lost on the way") {
  // What was seen on a busy machine: 137 of 16,687 packets sent again, and 137 dropped by softnet.
  const auto lost = [](std::int64_t dropped, std::int64_t by) {
    auto ways = packets_of(2, {{0, 1}}, 137, 5);
    for (auto& way : ways) {
      way.at(2) = 16687;
      if (way.at(0) == by) way.at(6) = dropped;
    }
    return linked(2, {}, Json::object(), ways);
  };
  const auto excused = lost(137, 1);
  CHECK(excused.outcome == Outcome::NotRun);
  CHECK(excused.at_fault.empty());
  CHECK(
      excused.reason.en.find("the machine was busy: of 16687 packets from host0 the kernel of host1 dropped up to 137 "
                             "itself") == 0);
  CHECK(excused.reason.zh.find("host0 发来的 16687 个数据包中，最多有 137 个被 host1 的内核丢弃") != std::string::npos);
  CHECK(lost(100000, 1).outcome == Outcome::NotRun);  // other programs' packets are in the host's count
  CHECK(lost(3, 1).outcome == Outcome::NotRun);       // each may have been 45, joined; 2 are left
  const auto real = lost(1, 1);
  CHECK(real.outcome == Outcome::Fail);
  CHECK(real.reason.en == "host0 - host1: lose 0.5513 % of 16687 packets from host0 to host1, in 5 of 5 exchanges");
  CHECK(lost(137, 0).outcome == Outcome::Fail);  // the sender dropped what came to it, and that is another way
  CHECK(linked(2, {}, Json::object(), packets_of(2, {{0, 1}}, 2, 1)).outcome == Outcome::Pass);
}

TEST_CASE("pairs: what a host dropped is read from the kernel's rows of processors and of TCP") {
  const auto folder = std::filesystem::temp_directory_path() / ("host_drops." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  CHECK(dropped_by_host(folder) == 0);
  std::ofstream(folder / "softnet_stat") << "043c76d5 00000030 0000001d\n03f8fade 00000059 00000075\n";
  CHECK(dropped_by_host(folder) == 0x30 + 0x59);
  std::ofstream(folder / "netstat") << "TcpExt: SyncookiesSent RcvPruned TCPBacklogDrop\nTcpExt: 7 2 40\n"
                                    << "IpExt: RcvPruned\nIpExt: 9\n";
  CHECK(dropped_by_host(folder) == 137 + 42);
  std::filesystem::remove_all(folder);
  CHECK(dropped_by_host() >= 0);
}

TEST_CASE("what is slower by a moment only is the host's scheduler and is not named, whatever the ratio") {
  std::vector<Measured> all;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    all.push_back(
        rank_with(rank, {{"cpu", true},
                         {"hosts", 3},
                         {"nodes", {"a", "b", "c"}},
                         {"facts", Json::array()},
                         {"pairs", {{0, 1, 65536, 1e-4, 1e-4}, {0, 2, 65536, 1e-4, 1e-4}, {1, 2, 65536, 1e-2, 1e-2}}},
                         {"packets", Json::array()},
                         {"faults", Json::array()}}));
  }
  Check check;
  judge_pairs(all, Json::object(), check);
  CHECK(check.outcome == Outcome::Pass);
}

TEST_CASE("pairs: the kernel's counts of this process's connections are what was sent since they were last taken") {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), sender = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(listener, where, size) == 0);
  REQUIRE(listen(listener, 1) == 0);
  REQUIRE(getsockname(listener, where, &size) == 0);
  REQUIRE(connect(sender, where, size) == 0);
  const int receiver = accept(listener, nullptr, nullptr);
  TcpCounts counts;
  counts.take();
  std::vector<char> data(1000);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(send(sender, data.data(), data.size(), 0) == 1000);
    REQUIRE(recv(receiver, data.data(), data.size(), MSG_WAITALL) == 1000);
  }
  const auto sent = counts.take();
  CHECK(sent.sent == 3);
  CHECK(sent.lost == 0);
  CHECK(counts.take().sent == 0);
  for (const int file : {sender, receiver, listener}) close(file);
}

TEST_CASE("in a tournament everyone meets everyone once, and nobody twice in a round") {
  for (std::int64_t players = 2; players < 12; ++players) {
    std::set<std::pair<std::int64_t, std::int64_t>> met;
    for (const auto& round : rounds_of_pairs(players, 31)) {
      std::set<std::int64_t> busy;
      for (const auto& [one, other] : round) {
        CHECK(one < other);
        CHECK(busy.insert(one).second);
        CHECK(busy.insert(other).second);
        CHECK(met.insert({one, other}).second);
      }
    }
    CHECK(static_cast<std::int64_t>(met.size()) == players * (players - 1) / 2);
  }
  CHECK(rounds_of_pairs(1000, 31).size() == 31);
}

TEST_CASE("every partial sum is exact in its dtype, in any world") {
  for (const auto* dtype : {"fp32", "bf16", "fp16", "int64"}) {
    for (const std::int64_t ranks : {2, 3, 8, 100, 255, 256, 1000, 100000}) {
      const auto modulus = modulus_of_sums(dtype, ranks);
      const auto most = modulus > 1 ? ranks * (modulus - 1) : ranks / one_in(dtype, ranks) + 1;
      CHECK(most <= exact_below(dtype));
      CHECK(most > 0);
    }
    CHECK(modulus_of_moves(dtype) <= exact_below(dtype));
  }
}

TEST_CASE("the mesh follows hosts where it can, else it is as square as it gets") {
  CHECK(mesh_of(16, 8) == std::pair<std::int64_t, std::int64_t>{2, 8});
  CHECK(mesh_of(12, 12) == std::pair<std::int64_t, std::int64_t>{4, 3});
  CHECK(mesh_of(7, 7) == std::pair<std::int64_t, std::int64_t>{7, 1});
  CHECK(mesh_of(9, 2) == std::pair<std::int64_t, std::int64_t>{3, 3});
}

TEST_CASE("what NCCL chose is read from its log: network, NVLS, channels and each kind of transport once") {
  const auto facts = facts_of_nccl_log(
      "gpu1:7:7 [0] NCCL INFO NCCL version 2.27.3+cuda12.9\n"
      "gpu1:7:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
      "gpu1:7:9 [0] NCCL INFO Using network IB\n"
      "gpu1:7:9 [0] NCCL INFO NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)\n"
      "gpu1:7:9 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels\n"
      "gpu1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
      "gpu1:7:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
      "gpu1:7:9 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
      "a line of something else via nothing\n");
  const std::vector<Fact> expected{
      {"NCCL", "2.27.3+cuda12.9"},
      {"NCCL NET/IB", "[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"},
      {"NCCL NVLS", {"not available", "不可用"}},
      {{"NCCL channels", "NCCL 通道"}, "16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels"},
      {{"NCCL network", "NCCL 网络"}, "IB"},
      {{"NCCL transports", "NCCL 传输方式"}, "NET/IB GDRDMA, P2P/CUMEM"}};
  CHECK(facts == expected);
  CHECK(facts_of_nccl_log("").empty());
}

}  // namespace
