// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/advice.hpp"

#include "trainer/shown_number.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <stdexcept>

namespace sealift::trainer::plan {
namespace {

using Such = std::function<bool(const Row&)>;

/// The first row of this kind: fitting rows by time, then the others by what they lack; null: none.
const Row* first(const std::vector<Row>& rows, const Such& such) {
  const auto found = std::find_if(rows.begin(), rows.end(), such);
  return found == rows.end() ? nullptr : &*found;
}

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * part);
  return text;
}

std::string seconds(double value) {
  return shown_number(value) + " s";
}

/// What nothing hides of the links' time, of a step.
double exposed(const Row& row) {
  return (row.time.exposed_gather + row.time.exposed_reduce) / row.time.seconds;
}

std::string tuner_words(const Row& row, bool zh) {
  if (row.tuner == "none") return zh ? "全参数训练" : "Full training";
  return row.tuner == "lora" ? "LoRA" : "QLoRA";
}

class Words {
 public:
  Words(const std::vector<Row>& rows, const Question& question, bool zh)
      : rows_(&rows), question_(&question), zh_(zh) {}

  /// All about one tuner.
  void say_of(const std::string& tuner) {
    const Such of_tuner = [&](const Row& row) { return row.tuner == tuner; };
    const auto* best = first(*rows_, of_tuner);
    if (!best) return;
    if (!best->fits) return say_none_fits(*best);
    say_best(*best);
    say_other_methods(*best);
    say_accumulation(*best);
    say_recompute(*best);
  }

  std::vector<std::string> lines;

 private:
  const std::string memory() const { return gigabytes(question_->machine.memory); }

  void say(const std::string& english, const std::string& chinese) { lines.push_back(zh_ ? chinese : english); }

  void say_none_fits(const Row& least) {
    const auto who = tuner_words(least, zh_);
    const auto parts = largest_parts(least.memory);
    say(who + " does not fit: even " + words_of(least) + " takes " + gigabytes(least.memory.sum()) + " of " + memory() +
            " a card (" + parts + "). More cards, a shorter row, or a tuner that trains less.",
        who + "放不下：即使 " + words_of(least) + "，每卡也需 " + gigabytes(least.memory.sum()) + "，而卡只有 " +
            memory() + "（" + parts + "）。请增加卡、缩短序列，或改用训练参数更少的方式。");
  }

  void say_best(const Row& best) {
    const auto who = tuner_words(best, zh_);
    const auto share = percent(exposed(best));
    say(who + ": " + words_of(best) + ". A card holds " + gigabytes(best.memory.sum()) + " of " + memory() +
            " and sends " + gigabytes(best.volume.sum()) + " a step of " + seconds(best.time.seconds) + ", of which " +
            share + " waits for links.",
        who + "：" + words_of(best) + "。每卡占用 " + gigabytes(best.memory.sum()) + "（共 " + memory() +
            "），每步发送 " + gigabytes(best.volume.sum()) + "，每步 " + seconds(best.time.seconds) +
            "，其中等待通信 " + share + "。");
  }

  /// Why it is ddp and not fsdp, or the other way round.
  void say_other_methods(const Row& best) {
    const bool is_ddp = best.way.method == Method::Ddp;
    const auto* other = first(*rows_, [&](const Row& row) {
      return row.tuner == best.tuner && (row.way.method == Method::Ddp) != is_ddp &&
             row.way.offload_parameters == best.way.offload_parameters;
    });
    if (!other) return;
    const auto name = name_of(other->way.method), chosen = name_of(best.way.method);
    if (!other->fits) {
      const auto more = gigabytes(other->memory.sum() - question_->machine.memory);
      const auto all = gigabytes(other->memory.sum()), parts = largest_parts(other->memory);
      return say("  Not " + name + ": even " + words_of(*other) + " takes " + all + " a card, " + more + " too many (" +
                     parts + "). " + chosen + " shares the model among " + std::to_string(best.way.shard) + " cards.",
                 "  不选 " + name + "：即使 " + words_of(*other) + "，每卡也需 " + all + "，超出 " + more + "（" +
                     parts + "）。" + chosen + " 把模型分到 " + std::to_string(best.way.shard) + " 张卡上。");
    }
    const auto slower = percent(other->time.seconds / best.time.seconds - 1);
    say("  " + name + " would fit too (" + gigabytes(other->memory.sum()) + " a card), and take " + slower +
            " longer: it sends " + gigabytes(other->volume.sum()) + " a step, " + chosen + " " +
            gigabytes(best.volume.sum()) + ".",
        "  " + name + " 也放得下（每卡 " + gigabytes(other->memory.sum()) + "），但每步慢 " + slower + "：每步发送 " +
            gigabytes(other->volume.sum()) + "，" + chosen + " 为 " + gigabytes(best.volume.sum()) + "。");
  }

  /// On a slow link: what more tokens between two steps buy.
  void say_accumulation(const Row& best) {
    if (exposed(best) < 0.3) return;
    const auto compute = best.time.compute, links = best.time.exposed_gather + best.time.exposed_reduce;
    const bool once = best.way.shard == 1 || best.way.keep_gathered;
    // What is sent once a step stays; its share falls as the step grows.
    const auto share = once ? links / (links + 4 * compute) : exposed(best);
    if (once) {
      say("  " + percent(exposed(best)) + " of the step waits for links: accumulate. With 4 times the rows a step " +
              "sends the same, and about " + percent(share) + " waits.",
          "  通信等待占 " + percent(exposed(best)) + "：请做梯度累积。每步行数增至 4 倍而发送量不变，等待约降到 " +
              percent(share) + "。");
    } else {
      say("  " + percent(exposed(best)) + " of the step waits for links: give each micro-batch more rows, or choose " +
              "cards with a faster link; gathers are repeated with each micro-batch.",
          "  通信等待占 " + percent(exposed(best)) +
              "：请增大每个微批的行数，或使用更快的互连；每个微批都要重新聚合参数。");
    }
  }

  void say_recompute(const Row& best) {
    if (!best.way.recompute) return;
    const auto* plain = first(*rows_, [&](const Row& row) {
      return row.tuner == best.tuner && !row.way.recompute && row.way.method == best.way.method &&
             row.way.batch.rows == best.way.batch.rows && row.way.offload_parameters == best.way.offload_parameters;
    });
    if (!plain) return;
    const auto saved = gigabytes(plain->memory.sum() - best.memory.sum());
    say("  Recompute saves " + saved + " of activations, for about a third more computation.",
        "  重计算节省约 " + saved + " 激活显存，代价是约三分之一的额外计算。");
  }

  const std::vector<Row>* rows_;
  const Question* question_;
  bool zh_;
};

}  // namespace

Language read_language(const std::string& name) {
  if (name == "en") return Language::English;
  if (name == "zh") return Language::Chinese;
  throw std::invalid_argument("--lang is '" + name + "'; expected en or zh");
}

std::vector<std::string> advice(const std::vector<Row>& rows, const Question& question, Language language) {
  Words words(rows, question, language == Language::Chinese);
  std::set<std::string> said;
  for (const auto& row : rows) {
    if (said.insert(row.tuner).second) words.say_of(row.tuner);
  }
  return words.lines;
}

}  // namespace sealift::trainer::plan
