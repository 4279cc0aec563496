// SPDX-License-Identifier: Apache-2.0
// Reading NCCL's log.
// See nccl_log.hpp.
// Forms of lines as NCCL 2.18 to 2.28 write them.
#include "verify/communication/nccl_log.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace sealift::verify {
namespace {

/// What follows `mark` in a line, without blanks at its end; nothing without the mark.
std::string after(const std::string& line, const std::string& mark) {
  const auto found = line.find(mark);
  if (found == std::string::npos) return {};
  auto rest = line.substr(found + mark.size());
  rest.erase(rest.find_last_not_of(" \r\t") + 1);
  return rest;
}

/// "NET/IB/0/GDRDMA" -> "NET/IB GDRDMA"; "P2P/CUMEM/read" -> "P2P/CUMEM": without the numbers of devices.
std::string kind_of_transport(const std::string& via) {
  std::istringstream parts(via);
  std::string first, second, rest;
  std::getline(parts, first, '/');
  std::getline(parts, second, '/');
  std::getline(parts, rest);
  return first + (second.empty() ? "" : "/" + second) + (rest.find("GDRDMA") != std::string::npos ? " GDRDMA" : "");
}

/// A file of ours that NCCL opens by its name. Empty where none was asked for.
std::string& own_log() {
  static std::string path;
  return path;
}

}  // namespace

std::vector<Fact> facts_of_nccl_log(const std::string& text) {
  std::map<std::string, Fact> facts;
  const auto know = [&](const Phrase& name, const Phrase& value) { facts[name.en] = {name, value}; };
  std::set<std::string> transports;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (auto version = after(line, "NCCL version "); !version.empty()) know("NCCL", version);
    if (auto network = after(line, "Using network "); !network.empty()) know({"NCCL network", "NCCL 网络"}, network);
    for (const std::string net : {"NET/IB", "NET/Socket"}) {
      if (auto used = after(line, net + " : Using "); !used.empty()) know("NCCL " + net, used);
    }
    if (auto nvls = after(line, "NVLS multicast support is "); !nvls.empty()) {
      know("NCCL NVLS", nvls.starts_with("not") ? Phrase{"not available", "不可用"} : Phrase{"available", "可用"});
    }
    if (line.find(" coll channels") != std::string::npos) {
      know({"NCCL channels", "NCCL 通道"}, after(line, "NCCL INFO "));
    }
    if (line.find("Channel ") == std::string::npos) continue;
    if (const auto via = after(line, " via "); !via.empty()) transports.insert(kind_of_transport(via));
  }
  std::string all;
  for (const auto& kind : transports) all += (all.empty() ? "" : ", ") + kind;
  if (!all.empty()) know({"NCCL transports", "NCCL 传输方式"}, all);
  std::vector<Fact> list;
  for (auto& [name, fact] : facts) list.push_back(std::move(fact));
  return list;
}

void ask_for_nccl_log(const std::filesystem::path& folder) {
  if (std::getenv("NCCL_DEBUG") || std::getenv("NCCL_DEBUG_FILE")) return;
  own_log() = (folder / "nccl.log").string();
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH,P2P,SHM,NVLS", 0);
  setenv("NCCL_DEBUG_FILE", own_log().c_str(), 1);
}

std::vector<Fact> facts_of_own_nccl_log() {
  std::ifstream in(own_log(), std::ios::binary);
  if (!in) return {};
  std::string text(std::size_t{8} << 20, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return facts_of_nccl_log(text);
}

}  // namespace sealift::verify
