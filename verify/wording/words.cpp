// SPDX-License-Identifier: Apache-2.0
// The table of the report's words.
// See words.hpp.
// Both languages stand side by side, so that one is not changed without the other.
#include "verify/wording/words.hpp"

#include <array>
#include <stdexcept>

namespace sealift::verify {
namespace {

struct Entry {
  Word word;
  const char* en;
  const char* zh;
};

// clang-format off
constexpr Entry kWords[] = {
    {Word::Report, "Verification report", "验证报告"},
    {Word::Comparison, "Comparison of two verification reports", "两份验证报告的比较"},
    {Word::Site, "Site", "站点"},
    {Word::LevelOf, "Level", "级别"},
    {Word::Times, "From, to (UTC)", "起止时间（UTC）"},
    {Word::Program, "Program", "程序"},
    {Word::Bundle, "Bundle", "包"},
    {Word::Manifest, "SHA-256 of its manifest", "清单的 SHA-256"},
    {Word::Signers, "Signed by (key ids)", "签名者（密钥标识）"},
    {Word::NoBundle, "none: the program was not run from an installed bundle", "无：程序不是从已安装的包运行的"},
    {Word::NoSigner, "nobody", "无签名"},
    {Word::Pass, "PASS", "通过"},
    {Word::Fail, "FAIL", "未通过"},
    {Word::NotRunYet, "NOT RUN", "未运行"},
    {Word::Quick, "quick", "快速（quick）"},
    {Word::Full, "full", "完整（full）"},
    {Word::Burn, "burn", "高负载（burn）"},
    {Word::Installation, "Installation", "安装"},
    {Word::Machine, "Machine", "机器"},
    {Word::Arithmetic, "Arithmetic", "运算"},
    {Word::Communication, "Communication", "通信"},
    {Word::Training, "Training", "训练"},
    {Word::Python, "Python", "Python"},
    {Word::Egress, "Egress", "外联"},
    {Word::PassMeans, "Every check that was run passed.", "已运行的检查全部通过。"},
    {Word::FailMeans, "At least one check failed.", "至少有一项检查未通过。"},
    {Word::NotRunMeans, "No check was run to its end; this is not a pass.", "没有任何检查运行完毕；这不算通过。"},
    {Word::WithOneNotRun, "with {} check not run: {}", "另有 {} 项检查未运行：{}"},
    {Word::WithNotRun, "with {} checks not run: {}", "另有 {} 项检查未运行：{}"},
    {Word::WithUnasked, "not part of this run (--level, --only): {}", "不属于本次运行（--level、--only）：{} 项"},
    {Word::Counts, "{} passed, {} failed, {} not run", "{} 项通过，{} 项未通过，{} 项未运行"},
    {Word::Summary, "What was run, by part", "各部分的运行情况"},
    {Word::PartOf, "Part", "部分"},
    {Word::Passed, "Passed", "通过"},
    {Word::Failed, "Failed", "未通过"},
    {Word::NotRunCount, "Not run", "未运行"},
    {Word::NoCheck, "no check of this part in this run", "本次运行没有这一部分的检查"},
    {Word::WhatFailed, "What failed", "未通过的检查"},
    {Word::NothingFailed, "Nothing that was run failed.", "已运行的检查中没有未通过的。"},
    {Word::AtFault, "At fault", "问题所在"},
    {Word::NobodyNamed, "the check names no rank, device or file", "检查未指出具体的进程、设备或文件"},
    {Word::AndMore, "and {} more; report.json names all", "另有 {} 项；report.json 列出全部"},
    {Word::AndMoreChecks, "and {} more", "另 {} 项"},
    {Word::WhatWasNotRun, "What was not run, and why", "未运行的检查及原因"},
    {Word::AllWasRun, "Every check of this level was run.", "本级别的检查全部运行。"},
    {Word::Because, "Reason", "原因"},
    {Word::NoReason, "no reason was recorded", "没有记录原因"},
    {Word::Machines, "Machines", "机器"},
    {Word::Hosts, "Hosts", "主机"},
    {Word::Ranks, "Ranks", "进程编号"},
    {Word::Devices, "Devices of each host", "每台主机的设备"},
    {Word::NoMachines, "no machine was recorded", "没有记录机器"},
    {Word::Signatures, "Signatures", "签字"},
    {Word::Verified, "Verified by", "验证人"},
    {Word::Reviewed, "Reviewed by", "复核人"},
    {Word::Approved, "Approved by", "批准人"},
    {Word::Role, "Role", "角色"},
    {Word::Name, "Name", "姓名"},
    {Word::Date, "Date", "日期"},
    {Word::Signature, "Signature", "签名"},
    {Word::SignedElsewhere,
     "The site's key signs report.digests, which lists the SHA-256 of this page and of report.json; "
     "report.digests.sig beside it is checked with openssl.",
     "站点密钥对 report.digests 签名，其中列有本页和 report.json 的 SHA-256；旁边的 report.digests.sig 可用 openssl 验证。"},
    {Word::FigureName, "Figure", "数值"},
    {Word::Took, "took {}", "用时 {}"},
    {Word::Measured, "Measured", "实测"},
    {Word::Expected, "Expected", "期望"},
    {Word::Basis, "Expected because of", "期望的依据"},
    {Word::Within, "as expected", "符合"},
    {Word::Outside, "outside", "不符合"},
    {Word::NoExpectation, "nothing expected", "无期望值"},
    {Word::AtLeast, "at least {}", "至少 {}"},
    {Word::AtMost, "at most {}", "至多 {}"},
    {Word::Between, "from {} to {}", "{} 至 {}"},
    {Word::FiguresLeftOut, "{} more figures are in report.json; {} of them are outside what is expected",
     "另有 {} 个数值见 report.json；其中 {} 个不符合期望"},
    {Word::Read, "Read", "读取项"},
    {Word::Value, "Value", "值"},
    {Word::FactsLeftOut, "{} more values are in report.json", "另有 {} 项见 report.json"},
    {Word::CutHere, "The whole text is in report.json.", "全文见 report.json。"},
    {Word::ExpectedCurve, "expected", "期望"},
    {Word::LowestOf, "lowest of {} curves", "{} 条曲线中的最低值"},
    {Word::MedianOf, "median of {} curves", "{} 条曲线的中位数"},
    {Word::HighestOf, "highest of {} curves", "{} 条曲线中的最高值"},
    {Word::NotFinite, "{} points are not drawn: they are infinite or no number", "{} 个点未画出：无穷大或不是数"},
    {Word::NotOnLog, "{} points are not drawn: a logarithmic axis has no place for zero and below",
     "{} 个点未画出：对数坐标轴无法表示零和负数"},
    {Word::NoPoint, "There is no point to draw.", "没有可画的点。"},
    {Word::Scale, "Scale", "色标"},
    {Word::NotMeasured, "not measured", "未测量"},
    {Word::Blocks, "Each cell stands for up to {} × {} values and shows the one farthest from the median of all.",
     "每格代表至多 {} × {} 个值，显示其中离总体中位数最远的一个。"},
    {Word::Extremes, "Lowest: {}. Highest: {}.", "最低：{}。最高：{}。"},
    {Word::Empty, "There is no value to draw.", "没有可画的值。"},
    {Word::Before, "Before (A)", "之前（A）"},
    {Word::After, "After (B)", "之后（B）"},
    {Word::Worse, "worse", "变差"},
    {Word::Better, "better", "变好"},
    {Word::Changed, "changed", "有变化"},
    {Word::NothingWorse, "Nothing became worse from A to B.", "从 A 到 B 没有变差的项。"},
    {Word::SomethingWorse, "{} things became worse from A to B.", "从 A 到 B 有 {} 项变差。"},
    {Word::Outcomes, "Outcomes that changed", "结果有变化的检查"},
    {Word::Figures, "Figures that moved by more than {}", "变化超过 {} 的数值"},
    {Word::Facts, "What checks read", "检查读取到的变化"},
    {Word::Environment, "Where and with what", "环境"},
    {Word::OnlyBefore, "only in A", "仅 A 有"},
    {Word::OnlyAfter, "only in B", "仅 B 有"},
    {Word::NothingChanged, "none", "无"},
    {Word::Noise, "A figure has moved when |B − A| is above {} of the larger of |A| and |B|.",
     "当 |B − A| 超过 |A| 与 |B| 中较大者的 {} 时，视为数值有变化。"},
    {Word::ExpectationChanged, "Expectations that changed", "期望值的变化"},
    {Word::Relative, "B to A", "B 相对 A"},
    {Word::NotMatrices, "Matrices are not compared; the two reports show them.", "矩阵不作比较，见两份报告。"},
    {Word::Curves, "Curves that differ", "有差异的曲线"},
    {Word::Curve, "Curve", "曲线"},
    {Word::FirstDifference, "First difference at", "首个差异位于"},
    {Word::LargestDifference, "Largest difference", "最大差异"},
    {Word::PointsOf, "{} points before, {} after", "之前 {} 个点，之后 {} 个"},
    {Word::DifferentLevels, "A and B were run at different levels: checks of the higher level alone, and figures (their sizes differ), "
     "count neither as worse nor as better.",
     "A 与 B 的运行级别不同：仅较高级别运行的检查，以及测量规模不同的数值，均不计为变差或变好。"},
    {Word::CheckName, "Check", "检查"},
    {Word::MoreRows, "{} more rows; --json gives all", "另有 {} 行；--json 给出全部"},
};
// clang-format on

constexpr bool in_order() {
  if (std::size(kWords) != static_cast<std::size_t>(Word::kCount)) return false;
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    if (kWords[i].word != static_cast<Word>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "the table has each word once, in the order of the enumeration");

}  // namespace

Language language_of(const std::string& name) {
  if (name == "en") return Language::English;
  if (name == "zh") return Language::Chinese;
  throw std::invalid_argument("--lang " + name + ": expected en or zh");
}

std::string word(Word which, Language language) {
  const auto& entry = kWords[static_cast<std::size_t>(which)];
  return language == Language::English ? entry.en : entry.zh;
}

std::string filled(Word which, Language language, std::initializer_list<std::string> values) {
  auto text = word(which, language);
  std::size_t from = 0;
  for (const auto& value : values) {
    const auto place = text.find("{}", from);
    if (place == text.npos) break;
    text.replace(place, 2, value);
    from = place + value.size();
  }
  return text;
}

std::string word(Outcome outcome, Language language) {
  constexpr std::array kOf{Word::Pass, Word::Fail, Word::NotRunYet};
  return word(kOf.at(static_cast<std::size_t>(outcome)), language);
}

std::string word(Part part, Language language) {
  constexpr std::array kOf{Word::Installation, Word::Machine, Word::Arithmetic, Word::Communication,
                           Word::Training,     Word::Python,  Word::Egress};
  return word(kOf.at(static_cast<std::size_t>(part)), language);
}

std::string word(Level level, Language language) {
  constexpr std::array kOf{Word::Quick, Word::Full, Word::Burn};
  return word(kOf.at(static_cast<std::size_t>(level)), language);
}

std::string mark(Outcome outcome) {
  return outcome == Outcome::Pass ? "✔" : outcome == Outcome::Fail ? "✘" : "○";
}

const std::string& in(const Phrase& phrase, Language language) {
  return language == Language::English || phrase.zh.empty() ? phrase.en : phrase.zh;
}

}  // namespace sealift::verify
