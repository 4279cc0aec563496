// SPDX-License-Identifier: Apache-2.0
// A verdict with every kind of content that a report can have. Its figures are made up: no machine was measured.
// For the tests of the pages, of the comparison and of signing, and for the pictures in docs/verify.md.
// A function and not a file, so that it changes with the value.
#pragma once

#include "verify/verdict/verdict.hpp"

#include <cmath>
#include <tuple>

namespace sealift::verify::made {

inline Check check(std::string name, Part part, Phrase title, Outcome outcome, Phrase reason, double seconds) {
  Check made;
  made.name = std::move(name);
  made.part = part;
  made.title = std::move(title);
  made.outcome = outcome;
  made.reason = std::move(reason);
  made.seconds = seconds;
  return made;
}

inline std::string host(int node) {
  return "gpu" + std::string(node < 10 ? "0" : "") + std::to_string(node);
}

inline Check installation() {
  auto made = check("installation.versions", Part::Installation,
                    {"what is installed is what the bundle's parts list names", "已安装的内容与包的物料清单一致"},
                    Outcome::Pass, {"412 packages as listed", "412 个软件包与清单一致"}, 2.4);
  made.facts = {{"torch", "2.11.0"}, {"NCCL", "2.27.3"}, {"ms-swift", "3.9.1"}};
  return made;
}

inline Check rates() {
  auto made = check(
      "machine.matrix_rate", Part::Machine,
      {"each device multiplies matrices as fast as its kind and its siblings", "每个设备的矩阵乘法速度与同类设备一致"},
      Outcome::Fail,
      {"rank 13 on gpu02 reaches 71 % of the median of its siblings",
       "gpu02 上的 13 号进程只达到同类设备中位数的 71 %"},
      11.8);
  made.at_fault = {{"rank 13 on gpu02 (cuda:5)", "gpu02 上的进程 13（cuda:5）"}};
  for (int rank = 8; rank < 16; ++rank) {
    const auto number = std::to_string(rank);
    made.figures.push_back({.name = {"bfloat16, rank " + number, "bfloat16，进程 " + number},
                            .value = rank == 13 ? 494.6 : 691.0 + rank,
                            .unit = "TFLOP/s",
                            .at_least = 626.4,
                            .at_most = {},
                            .basis = {"its siblings", "其他同类设备"}});
  }
  made.figures.push_back({.name = {"clock while multiplying, rank 13", "乘法时的频率，进程 13"},
                          .value = 1095,
                          .unit = "MHz",
                          .at_least = {},
                          .at_most = {},
                          .basis = ""});
  made.facts = {{{"driver", "驱动"}, "570.124.06"},
                {{"throttle reasons, rank 13", "降频原因，进程 13"}, {"SW thermal slowdown", "软件过热降频"}}};
  return made;
}

inline Check bandwidth() {
  auto made = check(
      "communication.all_reduce", Part::Communication,
      {"all-reduce is right and as fast as the fabric", "all-reduce 结果正确且达到网络应有的速度"}, Outcome::Pass,
      {"right for 5 dtypes and 9 sizes; 372.1 GB/s at 1 GiB", "5 种数据类型、9 种大小均正确；1 GiB 时 372.1 GB/s"},
      8.1);
  made.figures = {{.name = {"bus bandwidth at 1 GiB", "1 GiB 时的总线带宽"},
                   .value = 372.1,
                   .unit = "GB/s",
                   .at_least = 340.0,
                   .at_most = {},
                   .basis = {"its kind", "同类设备"}},
                  {.name = {"latency at 8 bytes", "8 字节时的延迟"},
                   .value = 21.4,
                   .unit = "µs",
                   .at_least = {},
                   .at_most = 40.0,
                   .basis = "site.toml"}};
  Graph graph{.title = {"Bus bandwidth by size", "各大小的总线带宽"},
              .x = {"message in bytes", "消息大小（字节）"},
              .y = {"bus bandwidth in GB/s", "总线带宽（GB/s）"},
              .log_x = true,
              .log_y = true,
              .curves = {}};
  for (const auto& [name, peak, start] :
       {std::tuple{"all-reduce", 374.0, 1.0}, {"all-gather", 351.0, 1.3}, {"reduce-scatter", 346.0, 0.8}}) {
    Curve curve{.name = name, .points = {}, .expected = false};
    for (double size = 8192; size < 2e9; size *= 4) {
      curve.points.emplace_back(size, peak * size / (size + 6e6 / start));
    }
    graph.curves.push_back(curve);
  }
  graph.curves.push_back({.name = {"its kind", "同类设备"},
                          .points = {{8192, 0.3}, {1e6, 40}, {16e6, 240}, {1.1e9, 340}},
                          .expected = true});
  made.graphs = {graph};
  made.facts = {
      {{"transport", "传输方式"}, {"NVLS within a node, IB/GDRDMA between nodes", "节点内 NVLS，节点间 IB/GDRDMA"}},
      {{"rings", "环数"}, "16"}};
  return made;
}

/// The rates between `nodes` hosts; the link between the third and the eighth is slow.
inline Matrix pairs(int nodes) {
  Matrix matrix{
      .title = {"Bandwidth between nodes", "节点间带宽"}, .unit = "GB/s", .rows = {}, .columns = {}, .values = {}};
  for (int from = 0; from < nodes; ++from) {
    matrix.rows.push_back(host(from + 1));
    matrix.columns.push_back(host(from + 1));
    for (int to = 0; to < nodes; ++to) {
      const bool slow = (from == 2 && to == 7) || (from == 7 && to == 2);
      const double rate = slow ? 18.2 : 46.5 + ((from * 7 + to * 3) % 11) / 5.0;
      matrix.values.push_back(from == to ? std::nullopt : std::optional(rate));
    }
  }
  return matrix;
}

inline Check links() {
  auto made =
      check("communication.node_pairs", Part::Communication,
            {"every pair of nodes reaches the rate of the others", "每对节点都达到其他节点对的速度"}, Outcome::Fail,
            {"gpu03 and gpu08 exchange 18.2 GB/s; the median of all pairs is 47.7 GB/s",
             "gpu03 与 gpu08 之间为 18.2 GB/s；所有节点对的中位数为 47.7 GB/s"},
            19.6);
  made.at_fault = {{"gpu03 and gpu08", "gpu03 与 gpu08"}};
  made.figures = {{.name = "gpu03 → gpu08",
                   .value = 18.2,
                   .unit = "GB/s",
                   .at_least = 42.9,
                   .at_most = {},
                   .basis = {"its siblings", "其他同类设备"}}};
  made.matrices = {pairs(8)};
  return made;
}

inline Check golden() {
  auto made =
      check("training.golden", Part::Training,
            {"the golden run gives the losses that were carried", "黄金运行得到随包携带的损失值"}, Outcome::Pass,
            {"200 losses equal to the bit, final weights equal", "200 步损失逐位一致，最终权重一致"}, 96.3);
  Graph graph{
      .title = {"Loss of the golden run", "基准运行的损失"},
      .x = {"step", "步"},
      .y = {"loss in nats", "损失（nat）"},
      .log_x = false,
      .log_y = false,
      .curves = {{.name = {"outside", "外部"}, .points = {}, .expected = true},
                 {.name = {"here, fsdp on 64 ranks", "此处，64 个进程的 fsdp"}, .points = {}, .expected = false}}};
  for (int step = 1; step <= 200; ++step) {
    const double loss = 1.9 + 8.9 * std::exp(-step / 38.0) + 0.12 * std::sin(step * 1.7) / std::sqrt(step);
    graph.curves[0].points.emplace_back(step, loss);
    graph.curves[1].points.emplace_back(step, loss);
  }
  made.graphs = {graph};
  made.figures = {{.name = {"largest difference of a loss", "损失的最大差异"},
                   .value = 0,
                   .unit = "nats",
                   .at_least = {},
                   .at_most = 0.0,
                   .basis = {"the golden run", "基准运行"}}};
  return made;
}

/// 64 ranks on 8 nodes; two checks failed, three were not run.
inline Verdict verdict() {
  Verdict made{.site = "Example Bank, hall 2",
               .level = Level::Full,
               .started = "2026-01-31T12:00:00Z",
               .finished = "2026-01-31T12:09:41Z",
               .program = "LibTorch 2.11.0",
               .bundle = BundleIdentity{"qwen-swift",
                                        "7",
                                        "9f2c61d07b3e4a58c1d2f6e3b8a7905d4c6f1e2a3b5d7081926c4e5fa3b7e0d1",
                                        {"3d1f0a9c5b7e2468d0c1f3a5b7986e4d2c0b1a3f5e7d9c8b6a4f2e0d1c3a0c7e",
                                         "b64e0f1d2c3a495867f1e0d9c8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e2d1cb9f"}},
               .nodes = {},
               .checks = {installation(), rates(), bandwidth(), links(), golden()}};
  for (int node = 0; node < 8; ++node) {
    Node one{.host = host(node + 1), .ranks = {}, .devices = {}};
    for (int gpu = 0; gpu < 8; ++gpu) {
      one.ranks.push_back(node * 8 + gpu);
      one.devices.push_back("device cuda:" + std::to_string(gpu) + ": NVIDIA H100 80GB HBM3, capability 9.0");
    }
    made.nodes.push_back(one);
  }
  made.checks.push_back(check(
      "arithmetic.heat", Part::Arithmetic, {"results stay the same under heat", "高温下结果保持不变"}, Outcome::NotRun,
      {"part of level burn; run with --level burn", "属于 burn 级别；请用 --level burn 运行"}, 0));
  made.checks.push_back(check("communication.endurance", Part::Communication,
                              {"links hold their rate for half an hour", "链路在半小时内保持速度"}, Outcome::NotRun,
                              {"part of level burn; run with --level burn", "属于 burn 级别；请用 --level burn 运行"},
                              0));
  made.checks.push_back(check("egress.attempts", Part::Egress, {"nothing tries to leave", "没有任何外联尝试"},
                              Outcome::NotRun,
                              {"user namespaces are not allowed on this host, and neither is seccomp's notifier",
                               "此主机不允许用户命名空间，也不允许 seccomp 通知器"},
                              0.1));
  return made;
}

}  // namespace sealift::verify::made
