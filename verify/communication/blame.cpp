// SPDX-License-Identifier: Apache-2.0
// Senders first, then receivers, then the two ends of one link, then sums.
// See blame.hpp.
// What an earlier step explains is nobody else's fault.
#include "verify/communication/blame.hpp"

#include "trainer/json_numbers.hpp"
#include "verify/communication/all_ranks.hpp"
#include "verify/wording/numbers.hpp"

#include <map>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

Phrase name_of_rank(const std::vector<Measured>& all, std::int64_t rank) {
  for (const auto& measured : all) {
    if (measured.rank == rank) return name_of(measured);
  }
  return {"rank " + std::to_string(rank), "进程 " + std::to_string(rank)};
}

struct WrongElement {
  std::int64_t seen_by = 0, from = -1, ranks = 0;
  Phrase where;  ///< "all_gather of bf16 x 1023 over world"
  Phrase element;
};

Phrase place_of(const Json& fault) {
  const auto op = fault.at("op").get<std::string>();
  const auto data = fault.at("dtype").get<std::string>() + " x " + std::to_string(fault.at("size").get<std::int64_t>());
  const auto group = name_of_group(fault.at("group"));
  return {op + " of " + data + " over " + group.en, group.zh + "的 " + op + "（" + data + "）"};
}

Phrase element_of(const Json& fault) {
  const auto index = std::to_string(fault.at("index").get<std::int64_t>());
  const auto got = exact_text(trainer::number_or_nan(fault.at("got"))),
             expected = exact_text(trainer::number_or_nan(fault.at("expected")));
  const auto bits = fault.value("bits", "");
  return {"element " + index + " is " + got + ", expected " + expected + (bits.empty() ? "" : ", other bits " + bits),
          "第 " + index + " 个元素为 " + got + "，应为 " + expected + (bits.empty() ? "" : "，不同的位 " + bits)};
}

std::vector<WrongElement> wrong_elements(const std::vector<Measured>& all) {
  std::vector<WrongElement> wrong;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& fault : measured.values.at("faults")) {
      wrong.push_back({measured.rank, fault.at("from"), fault.at("ranks"), place_of(fault), element_of(fault)});
    }
  }
  return wrong;
}

/// Finds who must be wrong for all `wrong` elements to be.
class Blame {
 public:
  Blame(const std::vector<Measured>& all, std::vector<WrongElement> wrong) : all_(all), wrong_(std::move(wrong)) {}

  Culprits find() {
    blame_senders();
    blame_receivers();
    blame_pairs();
    blame_sums();
    return culprits_;
  }

 private:
  void add(std::int64_t rank, const std::string& en, const std::string& zh, const WrongElement& example) {
    if (!blamed_.insert(rank).second) return;
    culprits_.add(name_of_rank(all_, rank), {en + ": " + example.where.en + ", " + example.element.en,
                                             zh + "：" + example.where.zh + "，" + example.element.zh});
  }
  bool explained(const WrongElement& wrong) const {
    return blamed_.contains(wrong.seen_by) || blamed_.contains(wrong.from);
  }

  void blame_senders() {
    std::map<std::int64_t, std::map<std::int64_t, const WrongElement*>> receivers;
    for (const auto& wrong : wrong_) {
      if (wrong.from >= 0) receivers[wrong.from].emplace(wrong.seen_by, &wrong);
    }
    for (const auto& [sender, by] : receivers) {
      if (by.size() > 1)
        add(sender, "sends wrong data to several ranks", "向多个进程发送了错误数据", *by.begin()->second);
    }
  }

  void blame_receivers() {
    std::map<std::int64_t, std::map<std::int64_t, const WrongElement*>> senders;
    for (const auto& wrong : wrong_) {
      if (wrong.from >= 0 && !explained(wrong)) senders[wrong.seen_by].emplace(wrong.from, &wrong);
    }
    for (const auto& [receiver, from] : senders) {
      if (from.size() > 1) {
        add(receiver, "has wrong data from several ranks", "从多个进程收到错误数据", *from.begin()->second);
      }
    }
  }

  void blame_pairs() {
    for (const auto& wrong : wrong_) {
      if (wrong.from < 0 || explained(wrong)) continue;
      if (wrong.from == wrong.seen_by) {
        add(wrong.seen_by, "has its own data wrong", "自身的数据错误", wrong);
        continue;
      }
      const auto from = std::to_string(wrong.from), to = std::to_string(wrong.seen_by);
      add(wrong.seen_by, "has wrong data from rank " + from, "从进程 " + from + " 收到错误数据", wrong);
      add(wrong.from, "it or its link to rank " + to + " may have sent it wrong",
          "该进程或其到进程 " + to + " 的链路可能发送错误", wrong);
    }
  }

  /// A wrong sum on some ranks only is theirs; on all of them it was wrong when it was sent.
  void blame_sums() {
    std::map<std::string, std::vector<const WrongElement*>> cases;
    for (const auto& wrong : wrong_) {
      if (wrong.from < 0) cases[wrong.where.en].push_back(&wrong);
    }
    for (const auto& [where, seen] : cases) {
      const bool by_all = static_cast<std::int64_t>(seen.size()) >= seen.front()->ranks;
      if (by_all && !culprits_.empty()) continue;  // who sends wrong data adds it too
      for (const auto* wrong : seen) {
        if (explained(*wrong)) continue;
        if (by_all) {
          add(wrong->seen_by, "has a wrong sum, as all ranks of the group have", "求和结果错误，组内所有进程均如此",
              *wrong);
        } else {
          add(wrong->seen_by, "has a wrong sum where others have the right one", "求和结果错误，而其他进程正确",
              *wrong);
        }
      }
    }
  }

  const std::vector<Measured>& all_;
  std::vector<WrongElement> wrong_;
  Culprits culprits_;
  std::set<std::int64_t> blamed_;
};

}  // namespace

Culprits blame_for_wrong_elements(const std::vector<Measured>& all) {
  return Blame(all, wrong_elements(all)).find();
}

}  // namespace sealift::verify
