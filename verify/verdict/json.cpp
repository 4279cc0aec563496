// SPDX-License-Identifier: Apache-2.0
// Checks and verdicts as JSON, both ways.
// See json.hpp.
// A reader of one object takes its keys one by one; what is left over is an error.
#include "verify/verdict/json.hpp"

#include "bundle/core/json.hpp"
#include "trainer/json_numbers.hpp"

#include <algorithm>
#include <array>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::size_t kLongestText = std::size_t{1} << 20, kLongestList = 5'000'000;
/// What the key of a Chinese name ends in; the key before it has the English one.
constexpr const char* kChinese = "_zh";

template <class Enum, std::size_t N>
struct Names {
  std::array<const char*, N> names;
  std::string of(Enum value) const { return names.at(static_cast<std::size_t>(value)); }
  Enum value(const std::string& name, const std::string& where) const {
    std::string all;
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] == name) return static_cast<Enum>(i);
      all += (i ? ", " : "") + std::string(names[i]);
    }
    bundle::refuse_json(where, "one of " + all + " was expected", bundle::SafePath::printable(name));
  }
};
constexpr Names<Outcome, 3> kOutcomes{{"PASS", "FAIL", "NOT RUN"}};
constexpr Names<Level, 3> kLevels{kLevelNames};
constexpr Names<Part, 7> kParts{
    {"installation", "machine", "arithmetic", "communication", "training", "python", "egress"}};

/// One object of a report: bundle's reader, and what reports have beside texts and objects.
class Reader {
 public:
  Reader(const Json& json, std::string where) : object_(json, std::move(where)) {}
  const Json& at(const std::string& key) { return object_.at(key); }
  std::string path(const std::string& key) const { return object_.where() + "." + key; }
  std::string text(const std::string& key) { return object_.string(key, kLongestText); }
  bool flag(const std::string& key) { return object_.boolean(key); }
  double number(const std::string& key) { return number_in(at(key), path(key)); }
  std::optional<double> number_or_null(const std::string& key) {
    const auto& value = at(key);
    return value.is_null() ? std::nullopt : std::optional(number_in(value, path(key)));
  }
  template <class Read>
  auto list(const std::string& key, Read read) {
    const auto& value = object_.array(key, kLongestList);
    std::vector<decltype(read(value, std::string()))> items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      items.push_back(read(value[i], path(key) + "[" + std::to_string(i) + "]"));
    }
    return items;
  }
  /// The text of `key`, and the Chinese one of `key`_zh where it has one.
  Phrase phrase(const std::string& key) {
    Phrase said(text(key));
    if (object_.has(key + kChinese)) said.zh = text(key + kChinese);
    return said;
  }
  std::vector<Phrase> phrases(const std::string& key) {
    const auto english = list(key, text_in);
    std::vector<Phrase> said(english.begin(), english.end());
    if (!object_.has(key + kChinese)) return said;
    const auto chinese = list(key + kChinese, text_in);
    if (chinese.size() != said.size()) {
      bundle::refuse_json(path(key + kChinese), std::to_string(said.size()) + " texts were expected",
                          std::to_string(chinese.size()));
    }
    for (std::size_t i = 0; i < said.size(); ++i) said[i].zh = chinese[i];
    return said;
  }
  bool has(const std::string& key) const { return object_.has(key); }
  void end() const { object_.done(); }
  static double number_in(const Json& value, const std::string& where) {
    const auto number = trainer::number_in(value);
    if (!number) bundle::refuse_json(where, "a number was expected", value.type_name());
    return *number;
  }
  static std::string text_in(const Json& value, const std::string& where) {
    if (!value.is_string()) bundle::refuse_json(where, "a string was expected", value.type_name());
    return value.get<std::string>();
  }

 private:
  bundle::JsonObject object_;
};

Ordered number(double value) {
  return trainer::with_all_numbers(Ordered(value));
}
Ordered number(const std::optional<double>& value) {
  return value ? number(*value) : Ordered(nullptr);
}

template <class Items, class Write>
Ordered list(const Items& items, Write write) {
  auto array = Ordered::array();
  for (const auto& item : items) array.push_back(write(item));
  return array;
}

/// Under `key` in English, and beside it in Chinese where that says it otherwise.
void put(Ordered& object, const std::string& key, const Phrase& phrase) {
  object[key] = phrase.en;
  if (!phrase.zh.empty() && phrase.zh != phrase.en) object[key + kChinese] = phrase.zh;
}
void put(Ordered& object, const std::string& key, const std::vector<Phrase>& phrases) {
  object[key] = list(phrases, [](const Phrase& phrase) { return phrase.en; });
  const auto differs = [](const Phrase& phrase) { return !phrase.zh.empty() && phrase.zh != phrase.en; };
  if (std::none_of(phrases.begin(), phrases.end(), differs)) return;
  object[key + kChinese] =
      list(phrases, [](const Phrase& phrase) { return phrase.zh.empty() ? phrase.en : phrase.zh; });
}

Phrase phrase_at(const Json& json, const std::string& where) {
  Reader read(json, where);
  Phrase phrase{read.text("en"), read.text("zh")};
  read.end();
  return phrase;
}

Figure figure_from(const Json& json, const std::string& where) {
  Reader read(json, where);
  Figure figure{read.phrase("name"),
                read.number("value"),
                read.phrase("unit"),
                read.number_or_null("at_least"),
                read.number_or_null("at_most"),
                read.phrase("basis")};
  read.end();
  return figure;
}

std::pair<double, double> point_from(const Json& json, const std::string& where) {
  if (!json.is_array() || json.size() != 2) bundle::refuse_json(where, "two numbers were expected");
  return {Reader::number_in(json[0], where), Reader::number_in(json[1], where)};
}
Ordered to_json(const Curve& curve) {
  Ordered json;
  put(json, "name", curve.name);
  json["expected"] = curve.expected;
  json["points"] = list(curve.points, [](const auto& point) {
    return Ordered::array({number(point.first), number(point.second)});
  });
  return json;
}
Curve curve_from(const Json& json, const std::string& where) {
  Reader read(json, where);
  Curve curve{read.phrase("name"), read.list("points", point_from), read.flag("expected")};
  read.end();
  return curve;
}

Ordered to_json(const Graph& graph) {
  Ordered json;
  put(json, "title", graph.title);
  put(json, "x", graph.x);
  put(json, "y", graph.y);
  json["log_x"] = graph.log_x;
  json["log_y"] = graph.log_y;
  json["curves"] = list(graph.curves, [](const Curve& curve) { return to_json(curve); });
  return json;
}
Graph graph_from(const Json& json, const std::string& where) {
  Reader read(json, where);
  Graph graph{read.phrase("title"), read.phrase("x"),   read.phrase("y"),
              read.flag("log_x"),   read.flag("log_y"), read.list("curves", curve_from)};
  read.end();
  return graph;
}

Ordered to_json(const Matrix& matrix) {
  Ordered json;
  put(json, "title", matrix.title);
  put(json, "unit", matrix.unit);
  put(json, "rows", matrix.rows);
  put(json, "columns", matrix.columns);
  json["values"] = list(matrix.values, [](const auto& value) { return number(value); });
  return json;
}
Matrix matrix_from(const Json& json, const std::string& where) {
  Reader read(json, where);
  Matrix matrix{read.phrase("title"), read.phrase("unit"), read.phrases("rows"), read.phrases("columns"),
                read.list("values", [](const Json& value, const std::string& place) {
                  return value.is_null() ? std::nullopt : std::optional(Reader::number_in(value, place));
                })};
  read.end();
  if (matrix.values.size() != matrix.rows.size() * matrix.columns.size()) {
    bundle::refuse_json(where,
                        "a value was expected for each of " + std::to_string(matrix.rows.size()) + " rows and " +
                            std::to_string(matrix.columns.size()) + " columns",
                        std::to_string(matrix.values.size()) + " values");
  }
  return matrix;
}

Ordered to_json(const Fact& fact) {
  Ordered json;
  put(json, "name", fact.name);
  put(json, "value", fact.value);
  return json;
}
Fact fact_from(const Json& json, const std::string& where) {
  Reader read(json, where);
  Fact fact{read.phrase("name"), read.phrase("value")};
  read.end();
  return fact;
}

Check check_at(const Json& json, const std::string& where) {
  Reader read(json, where);
  Check check;
  check.name = read.text("name");
  check.part = kParts.value(read.text("part"), where + ".part");
  check.title = phrase_at(read.at("title"), where + ".title");
  check.outcome = kOutcomes.value(read.text("outcome"), where + ".outcome");
  check.reason = phrase_at(read.at("reason"), where + ".reason");
  check.at_fault = read.phrases("at_fault");
  check.seconds = read.number("seconds");
  check.figures = read.list("figures", figure_from);
  check.graphs = read.list("graphs", graph_from);
  check.matrices = read.list("matrices", matrix_from);
  check.facts = read.list("facts", fact_from);
  read.end();
  return check;
}

std::optional<BundleIdentity> bundle_from(const Json& json, const std::string& where) {
  if (json.is_null()) return std::nullopt;
  Reader read(json, where);
  BundleIdentity bundle{read.text("name"), read.text("version"), read.text("manifest_sha256"),
                        read.list("signers", Reader::text_in)};
  read.end();
  return bundle;
}

Node node_from(const Json& json, const std::string& where) {
  Reader read(json, where);
  Node node{read.text("host"),
            read.list("ranks",
                      [](const Json& value, const std::string& place) {
                        if (!value.is_number_integer()) bundle::refuse_json(place, "a whole number was expected");
                        return value.get<std::int64_t>();
                      }),
            read.list("devices", Reader::text_in)};
  read.end();
  return node;
}

}  // namespace

std::string name_of(Outcome outcome) {
  return kOutcomes.of(outcome);
}
std::string name_of(Level level) {
  return kLevels.of(level);
}
std::string name_of(Part part) {
  return kParts.of(part);
}

Ordered to_json(const Phrase& phrase) {
  return {{"en", phrase.en}, {"zh", phrase.zh}};
}

Ordered to_json(const Figure& figure) {
  Ordered json;
  put(json, "name", figure.name);
  json["value"] = number(figure.value);
  put(json, "unit", figure.unit);
  json["at_least"] = number(figure.at_least);
  json["at_most"] = number(figure.at_most);
  put(json, "basis", figure.basis);
  return json;
}

Ordered to_json(const Check& check) {
  Ordered json{{"name", check.name},
               {"part", name_of(check.part)},
               {"title", to_json(check.title)},
               {"outcome", name_of(check.outcome)},
               {"reason", to_json(check.reason)}};
  put(json, "at_fault", check.at_fault);
  json["seconds"] = number(check.seconds);
  json["figures"] = list(check.figures, [](const Figure& figure) { return to_json(figure); });
  json["graphs"] = list(check.graphs, [](const Graph& graph) { return to_json(graph); });
  json["matrices"] = list(check.matrices, [](const Matrix& matrix) { return to_json(matrix); });
  json["facts"] = list(check.facts, [](const Fact& fact) { return to_json(fact); });
  return json;
}

Ordered to_json(const Verdict& verdict) {
  Ordered json{{"format", kFormat},          {"verdict", name_of(outcome_of(verdict))},
               {"site", verdict.site},       {"level", name_of(verdict.level)},
               {"started", verdict.started}, {"finished", verdict.finished},
               {"program", verdict.program}, {"bundle", nullptr}};
  if (verdict.bundle) {
    json["bundle"] = {{"name", verdict.bundle->name},
                      {"version", verdict.bundle->version},
                      {"manifest_sha256", verdict.bundle->manifest_sha256},
                      {"signers", verdict.bundle->signers}};
  }
  json["nodes"] = list(verdict.nodes, [](const Node& node) {
    return Ordered{{"host", node.host}, {"ranks", node.ranks}, {"devices", node.devices}};
  });
  json["not_run"] = not_run(verdict).asked;
  json["checks"] = list(verdict.checks, [](const Check& check) { return to_json(check); });
  return json;
}

Phrase phrase_from(const Json& json) {
  return json.is_string() ? Phrase(json.get<std::string>()) : phrase_at(json, "the phrase");
}

Check check_from(const Json& json) {
  return check_at(json, "the check");
}

Verdict verdict_from(const Json& json) {
  Reader read(json, "the report");
  if (const auto format = read.number("format"); format != kFormat) {
    bundle::refuse_json("the report.format", "this program reads format " + std::to_string(kFormat),
                        std::to_string(format));
  }
  const auto stated = kOutcomes.value(read.text("verdict"), "the report.verdict");
  Verdict verdict;
  verdict.site = read.text("site");
  verdict.level = kLevels.value(read.text("level"), "the report.level");
  verdict.started = read.text("started");
  verdict.finished = read.text("finished");
  verdict.program = read.text("program");
  verdict.bundle = bundle_from(read.at("bundle"), "the report.bundle");
  verdict.nodes = read.list("nodes", node_from);
  const auto stated_not_run =
      read.has("not_run") ? std::optional(read.list("not_run", Reader::text_in)) : std::nullopt;  // of before: without
  verdict.checks = read.list("checks", check_at);
  read.end();
  if (stated != outcome_of(verdict)) {
    bundle::refuse_json("the report.verdict", "its checks come to " + name_of(outcome_of(verdict)), name_of(stated));
  }
  if (stated_not_run && *stated_not_run != not_run(verdict).asked) {
    bundle::refuse_json("the report.not_run", "its checks come to others", Json(*stated_not_run).dump());
  }
  return verdict;
}

}  // namespace sealift::verify
