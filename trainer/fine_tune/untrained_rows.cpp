// SPDX-License-Identifier: Apache-2.0
// See untrained_rows.hpp.
// Rows are compared with a sample of the others, spread over the whole table, so that little is read.
#include "trainer/fine_tune/untrained_rows.hpp"

#include <set>

namespace sealift::trainer {
namespace {

constexpr std::int64_t kSampledRows = 512;  ///< rows
constexpr double kFarBelow = 0.1;           ///< a row below this part of a usual length or distance
constexpr std::size_t kMostNamed = 8;

using TokenNames = std::map<std::int64_t, std::string>;

safetensors::Json json_in(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return safetensors::Json::object();
  return safetensors::parse_json(train::read_text(path, std::uint64_t{256} << 20), 32, path.string());
}

/// What the tokenizer adds to its vocabulary: tokenizer.json's list, and those of the files beside it.
TokenNames added_tokens(const std::filesystem::path& model) {
  TokenNames names;
  const auto add = [&](const safetensors::Json& id, const safetensors::Json& content) {
    if (id.is_number_integer() && content.is_string()) names[id.get<std::int64_t>()] = content.get<std::string>();
  };
  const auto tokenizer = json_in(model / "tokenizer.json");
  if (tokenizer.is_object() && tokenizer.contains("added_tokens") && tokenizer["added_tokens"].is_array()) {
    for (const auto& each : tokenizer["added_tokens"]) {
      if (each.is_object() && each.contains("id") && each.contains("content")) add(each["id"], each["content"]);
    }
  }
  const auto file = json_in(model / "added_tokens.json");
  for (const auto& [content, id] : file.items()) add(id, content);
  return names;
}

/// Those of `names` that the data have.
TokenNames in_data(const TokenFile& data, const TokenNames& names) {
  TokenNames found;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(1000, data->header().sequences); ++i) {
    const auto sequence = data.view().sequence(i);
    for (std::size_t at = 0; at < sequence.size(); ++at) {
      const auto name = names.find(sequence.token(at));
      if (name != names.end()) found.insert(*name);
    }
  }
  return found;
}

/// A table of the base: [rows, width].
class FrozenTable {
 public:
  FrozenTable(train::Source& base, std::string name, std::int64_t rows, std::int64_t width)
      : base_(base), name_(std::move(name)), sizes_{rows, width} {
    const auto count = std::min(rows, kSampledRows);
    auto sample = torch::empty({count, width});
    for (std::int64_t i = 0; i < count; ++i) sample[i].copy_(row(i * rows / count));
    mean_ = sample.mean(0);
    length_ = at::linalg_vector_norm(sample, 2, {1}).median().item<double>();
    distance_ = at::linalg_vector_norm(sample - mean_, 2, {1}).median().item<double>();
  }

  at::Tensor row(std::int64_t number) {
    auto out = torch::empty({sizes_[1]});
    base_.read(name_, sizes_, number * sizes_[1], out);
    return out;
  }

  bool looks_untrained(const at::Tensor& row) const {
    return row.norm().item<double>() < kFarBelow * length_ ||
           (row - mean_).norm().item<double>() < kFarBelow * distance_;
  }

 private:
  train::Source& base_;
  std::string name_;
  std::vector<std::int64_t> sizes_;
  at::Tensor mean_;
  double length_ = 0, distance_ = 0;
};

std::set<std::int64_t> untrained_of(FrozenTable table, const TokenNames& tokens) {
  std::set<std::int64_t> found;
  std::map<std::int64_t, at::Tensor> rows;
  for (const auto& [token, name] : tokens) {
    const auto row = table.row(token);
    if (table.looks_untrained(row)) found.insert(token);
    for (const auto& [other, its] : rows) {
      if (its.equal(row)) found.insert({token, other});
    }
    rows.emplace(token, row);
  }
  return found;
}

}  // namespace

std::string untrained_rows(const TokenFile& data, const std::filesystem::path& model, const DecoderConfig& config,
                           const LoraOptions& lora, train::Source& base) {
  auto tokens = in_data(data, added_tokens(model));
  std::erase_if(tokens, [&](const auto& each) { return each.first >= config.vocabulary; });
  if (tokens.empty()) return {};
  std::vector<std::string> tables = {"model.embed_tokens"};
  if (!config.tied_head && !config.reward_head) tables.emplace_back("lm_head");
  const auto is_trained = [&](const auto& table) { return is_saved_whole(table + ".weight", lora.modules_to_save); };
  std::erase_if(tables, is_trained);
  std::set<std::int64_t> found;
  std::vector<std::string> frozen;
  for (const auto& table : tables) {
    frozen.push_back(table.substr(table.rfind('.') + 1));
    found.merge(untrained_of(FrozenTable(base, table + ".weight", config.vocabulary, config.width), tokens));
  }
  if (found.empty()) return {};
  std::string list;
  std::size_t shown = 0;
  for (const auto token : found) {
    if (shown++ == kMostNamed) break;
    list += (list.empty() ? "'" : ", '") + tokens.at(token) + "' (" + std::to_string(token) + ")";
  }
  if (found.size() > kMostNamed) list += " and " + std::to_string(found.size() - kMostNamed) + " more";
  return "note: the data have tokens whose rows of " + c10::Join(" and ", frozen) +
         " look untrained, and stay so, since adapters leave these frozen: " + list +
         "; train them by modules_to_save " + c10::Join(" ", frozen) + ", or take a base that was trained with them";
}

}  // namespace sealift::trainer
