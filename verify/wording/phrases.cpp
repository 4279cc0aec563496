// SPDX-License-Identifier: Apache-2.0
// The table of phrases, and how a text is found in it.
// See phrases.hpp.
// A phrase without places comes first; of the others the first that fits, so those that fit more stand below.
#include "verify/wording/phrases.hpp"

#include <algorithm>
#include <optional>
#include <regex>
#include <vector>

namespace sealift::verify {
namespace {

/// A longer value of a fact is what a program said: a command line, a stack.
constexpr std::size_t kMostValue = 120;

/// "{}" stands for any text and "{w}" for one without a space; "{1}" of the Chinese is the first of them, itself put
/// into Chinese.
struct Phrase {
  const char* en;
  const char* zh;
};

// clang-format off
constexpr Phrase kPhrases[] = {
    // training
    {"loss", "损失"},
    {"step", "步"},
    {"loss in nats per token", "损失（nat/词元）"},
    {"nats per token", "nat/词元"},
    {"relative", "（相对值）"},
    {"final loss", "最终损失"},
    {"largest difference of a loss: {}", "损失的最大差异：{1}"},
    {"largest difference of a gradient norm: {}", "梯度范数的最大差异：{1}"},
    {"loss of the data with the adapter, in PEFT", "在 PEFT 中加载适配器后的数据损失"},
    {"loss without the adapter", "不加载适配器的损失"},
    {"sealift-train's evaluation", "sealift-train 的评估"},
    {"entropy of the data", "数据的熵"},
    {"the golden run", "基准运行"},
    {"one process", "单进程"},
    {"one process here", "本站点单进程"},
    {"the site's method", "本站点方法"},
    {"accumulation", "梯度累积"},
    {"recompute", "重计算"},
    {"the job that never stopped", "未中断的作业"},
    {"the job that was killed and went on", "被终止后继续的作业"},
    {"{w} ranks, then one from their checkpoint", "{1} 个进程训练后由单进程从其检查点继续"},
    {"{w} ranks here", "本站点 {1} 个进程"},
    {"{w} ranks here as recorded", "按录制方式运行的 {1} 个进程"},
    {"{w} ranks by {w}", "{1} 个进程，{2}"},
    {"Python's {w} on {w} ranks", "Python 的 {1}（{2} 个进程）"},
    {"{} on {w} ranks", "{2} 个进程的 {1}"},
    {"final weights", "最终权重"},
    {"the same bits", "逐位相同"},
    {"other bits", "不相同"},
    {"recorded on", "录制于"},
    {"recorded by", "录制者"},
    {"run on", "运行于"},
    {"held to", "比较标准"},
    {"the bit, the device being of the same kind", "设备同类，须逐位相同"},
    {"the stated tolerance", "所声明的容差"},
    {"ranks", "进程数"},
    {"{w} on this host, started for this", "{1}（在本主机为此启动）"},
    {"the ranks together, by the site's method", "全部进程（按本站点方法）"},
    {"the ranks together, as recorded", "全部进程（按录制方式）"},
    // arithmetic
    {"devices", "设备"},
    {"digests of each", "每个设备的摘要数"},
    {"held to a reference", "与参考结果比较的设备"},
    {"rounds of the slowest device", "最慢设备的轮数"},
    {"duration", "时长"},
    {"matmul {w}", "{1} 矩阵乘法"},
    {"memory", "内存带宽"},
    {"host to device", "主机到设备"},
    {"{}, typical of {}", "{1}，{2} 的典型值"},
    {"{}, lowest of {}", "{1}，{2} 的最低值"},
    {"{w} device, LibTorch {w}, {}", "{1} 个设备，LibTorch {2}，{3}"},
    {"{w} devices, LibTorch {w}, {}", "{1} 个设备，LibTorch {2}，{3}"},
    {"no reference", "无参考结果"},
    // communication
    {"bytes", "字节"},
    {"bus bandwidth in GB/s", "总线带宽（GB/s）"},
    {"bus bandwidth over {}", "{1} 的总线带宽"},
    {"bandwidth between nodes", "节点间带宽"},
    {"{}, best bus bandwidth over world", "{1}，全部进程间的最高总线带宽"},
    {"latency of {w} over world", "全部进程间 {1} 的延迟"},
    {"world", "全部进程"},
    {"replicate", "各副本之间"},
    {"shard", "各分片之间"},
    {"processors that other programs took", "其他程序占用的处理器数"},
    {"slowest pair", "最慢的节点对"},
    {"typical pair", "典型的节点对"},
    {"packets counted", "统计的数据包数"},
    {"packets lost on the worst link", "丢包最多的链路的丢包率"},
    {"packets lost on the way from row to column", "从行到列途中丢失的数据包"},
    {"slowest exchange of a pair, against its fastest", "同一节点对中最慢与最快一次交换之比"},
    {"cases on all ranks", "全部进程的用例数"},
    {"engine", "通信库"},
    {"mesh", "进程网格"},
    {"replicate {w} x shard {w}", "副本 {1} × 分片 {2}"},
    {"NCCL, and Gloo for what is on the host", "NCCL；主机上的数据用 Gloo"},
    {"NCCL network", "NCCL 网络"},
    {"NCCL channels", "NCCL 通道"},
    {"NCCL transports", "NCCL 传输方式"},
    {"available", "可用"},
    {"not available", "不可用"},
    {"{} over world", "全部进程间的 {1}"},
    // machine, installation
    {"{w} cpu", "{1} 处理器"},
    {"{w} cpus", "{1} 处理器数"},
    {"{w} governors", "{1} 频率调节策略"},
    {"{w} kernel", "{1} 内核"},
    {"{w} glibc", "{1} glibc"},
    {"{w} memory_gib", "{1} 内存（GiB）"},
    {"{w} numa_nodes", "{1} NUMA 节点数"},
    {"{w} huge_pages", "{1} 大页数"},
    {"{w} shm_mib", "{1} /dev/shm（MiB）"},
    {"{w} locked_mib", "{1} 可锁定内存（MiB）"},
    {"{w} free_gib", "{1} 临时空间（GiB）"},
    {"{w} gpudirect", "{1} GPUDirect RDMA"},
    {"{w} findings", "{1} 发现的问题数"},
    {"{w} name", "{1} 包名"},
    {"{w} version", "{1} 包版本"},
    {"{w} identity", "{1} 包标识"},
    {"true", "是"},
    {"false", "否"},
    {"unlimited", "不限"},
    {"signer", "签名者"},
    {"driver on {w}", "{1} 的驱动"},
    {"the other clocks, +- {w} s", "其他时钟，误差 {1} 秒"},
    {"its kind", "同类设备"},
    {"its siblings", "其他同类设备"},
    // egress
    {"attempts to leave", "外联尝试"},
    {"nothing may leave", "不允许外联"},
    {"may be reached", "允许访问的目标"},
    {"only this run's hosts", "仅本次运行的主机"},
    {"calls looked at", "检查过的调用"},
    {"programs watched", "监视过的程序"},
    {"Python stack", "Python 调用栈"},
    {"network", "网络"},
    {"one of its own, whose packets were counted", "独立网络，其数据包均被计数"},
    {"a program of this run", "本次运行的某个程序"},
    {"the run", "本次运行"},
    {"{w} ({} on {w})", "{1}（{3} 上的 {2}）"},
    {"{w}, {w} ranks", "{1}（{2} 个进程）"},
    {"{} asked DNS for {w} at {w}", "{1} 向 {3} 查询域名 {2}"},
    {"{} called {w} to {w}", "{1} 试图连接 {3}（{2}）"},
    // who is at fault
    {"rank {w} on {w} ({})", "{2} 上的进程 {1}（{3}）"},
    {"rank {w} on {w}", "{2} 上的进程 {1}"},
    {"ranks {} on {w}", "{2} 上的进程 {1}"},
    {"rank {w}", "进程 {1}"},
    {"ranks {} and {w} more", "进程 {1} 等，另有 {2} 个"},
    {"ranks {}", "进程 {1}"},
    {"GPU {w} on {w}", "{2} 上的 GPU {1}"},
    {"{} on {w}", "{2} 上的 {1}"},
};
// clang-format on

struct Piece {
  std::string literal;  ///< before the place
  char place = 0;       ///< 0: none; '*': any text; 'w': without a space
};

std::vector<Piece> pieces_of(const std::string& pattern) {
  std::vector<Piece> parts(1);
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{') {
      parts.back().literal += pattern[at];
      continue;
    }
    const bool word = pattern[at + 1] == 'w';
    parts.back().place = word ? 'w' : '*';
    parts.emplace_back();
    at += word ? 2 : 1;
  }
  return parts;
}

/// What stands at the places of `pattern`, each the shortest that fits; nothing: the text is another.
std::optional<std::vector<std::string>> fitting(const std::string& text, const std::vector<Piece>& parts) {
  if (!text.starts_with(parts[0].literal)) return std::nullopt;
  std::vector<std::string> found;
  std::size_t at = parts[0].literal.size();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const auto& literal = parts[i].literal;
    const auto end = last && literal.empty() ? text.size()
                     : last                  ? text.size() - std::min(text.size(), literal.size())
                                             : text.find(literal, at);
    if (end == text.npos || end <= at || text.compare(end, literal.size(), literal) != 0) return std::nullopt;
    found.push_back(text.substr(at, end - at));
    if (parts[i - 1].place == 'w' && found.back().find(' ') != text.npos) return std::nullopt;
    at = end + literal.size();
  }
  if (at != text.size()) return std::nullopt;
  return found;
}

std::string in_chinese(const std::string& text, int depth);

std::string filled_phrase(const std::string& zh, const std::vector<std::string>& found, int depth) {
  std::string text;
  for (std::size_t at = 0; at < zh.size(); ++at) {
    if (zh[at] != '{') {
      text += zh[at];
      continue;
    }
    text += in_chinese(found.at(static_cast<std::size_t>(zh[at + 1] - '1')), depth + 1);
    at += 2;
  }
  return text;
}

std::string in_chinese(const std::string& text, int depth) {
  static const auto patterns = [] {
    std::vector<std::vector<Piece>> all;
    for (const auto& one : kPhrases) all.push_back(pieces_of(one.en));
    return all;
  }();
  // Names of figures are short; whatever is longer was said by a program.
  if (depth > 3 || text.size() > 400) return text;
  for (const auto& one : kPhrases) {
    if (text == one.en) return one.zh;
  }
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (const auto found = fitting(text, patterns[i])) return filled_phrase(kPhrases[i].zh, *found, depth);
  }
  return text;
}

}  // namespace

std::string phrase(const std::string& text, Language language) {
  return language == Language::English ? text : in_chinese(text, 0);
}

std::string reason_in(const Check& check, Language language) {
  const auto& text = in(check.reason, language);
  if (language == Language::English || text.size() > 100'000) return text;
  // Regular expressions of the library recurse for each repetition, so these are bounded.
  static const std::regex rank(R"(\brank (\d{1,18}) on ([^\s()]{1,255}) \(([^()]{1,100})\))");
  static const std::regex job(R"(, (\d{1,18}) ranks\b)");
  return std::regex_replace(std::regex_replace(text, rank, "$2 上的进程 $1（$3）"), job, "（$1 个进程）");
}

Check in_words_of(const Check& check, Language language) {
  if (language == Language::English) return check;
  auto said = check;
  const auto put = [&](std::string& text) { text = phrase(text, language); };
  for (auto& figure : said.figures) {
    for (auto* text : {&figure.name, &figure.unit, &figure.basis}) put(*text);
  }
  for (auto& graph : said.graphs) {
    for (auto* text : {&graph.title, &graph.x, &graph.y}) put(*text);
    for (auto& curve : graph.curves) put(curve.name);
  }
  for (auto& matrix : said.matrices) {
    put(matrix.title);
    for (auto* names : {&matrix.rows, &matrix.columns}) {
      for (auto& name : *names) put(name);
    }
  }
  for (auto& [name, value] : said.facts) {
    put(name);
    if (value.size() <= kMostValue) put(value);
  }
  return said;
}

}  // namespace sealift::verify
