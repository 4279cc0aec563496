// SPDX-License-Identifier: Apache-2.0
// The cards, from the result.
// See cards.hpp.
// Names come from files and settings that others wrote, so in YAML they are quoted, and on a page no line is theirs.
#include "trainer/fine_tune/cards.hpp"

#include "trainer/json_numbers.hpp"
#include "trainer/own_bundle.hpp"
#include "trainer/ranks/patient_save.hpp"

#include <sstream>

namespace sealift::trainer {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// At most so many losses on a page; result.json has all.
constexpr std::size_t kShown = 20;

/// One line, that no Markdown is read from.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') {
      line += ' ';
      continue;
    }
    if (std::string("\\`*_{}[]<>#|").find(c) != std::string::npos) line += '\\';
    line += c;
  }
  return line;
}

std::string one_line(const OrderedJson& value) {
  return one_line(value.is_string() ? value.get<std::string>() : with_all_numbers(value).dump());
}

/// A text in YAML's double quotes, which are JSON's.
std::string yaml_text(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
}

std::string folder_name(const std::string& folder) {
  const auto path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::string table_row(const std::string& name, const OrderedJson& value) {
  return "| " + one_line(name) + " | " + one_line(value) + " |\n";
}

/// How it was trained, in a sentence.
std::string how_trained(const OrderedJson& result) {
  std::ostringstream text;
  text << "Trained with `sealift-train` for " << result.at("steps") << " steps; "
       << (result.at("tuner_type") == "none" ? "all parameters" : one_line(result.at("tuner_type")) + " adapters")
       << ", " << result.at("trainable_parameters") << " of " << result.at("parameters") << " parameters.";
  return text.str();
}

std::string best_loss(const OrderedJson& result) {
  if (result.contains("best")) {
    return "The least evaluation loss is " + one_line(result.at("best").at("loss")) + ", after step " +
           one_line(result.at("best").at("step")) + ".";
  }
  return "It was not evaluated while it was trained.";
}

std::string data_rows(const CardFacts& facts) {
  std::string text = "| data | examples | SHA-256 of the token file's content |\n|---|---|---|\n";
  for (const auto& [name, digest] : facts.data) {
    text += "| " + one_line(name) + " | " + std::to_string(facts.examples.at(name)) + " | " + one_line(digest) + " |\n";
  }
  return text;
}

/// The losses of the first and the last step and of some between.
std::string loss_rows(const OrderedJson& result) {
  const auto& all = result.at("losses");
  std::string text = "| step | loss |\n|---|---|\n";
  const auto every = std::max<std::size_t>(1, (all.size() + kShown - 1) / kShown);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % every == 0 || i + 1 == all.size()) text += table_row(std::to_string(i + 1), all[i]);
  }
  return text;
}

}  // namespace

std::string model_card(const OrderedJson& result, const CardFacts& facts, bool is_adapter) {
  const auto base = folder_name(facts.base);
  std::string text = "---\nbase_model: " + yaml_text(base) + "\n";
  text += is_adapter ? "library_name: \"peft\"\n" : "library_name: \"transformers\"\n";
  const bool scores = result.at("task") == "reward";
  const std::string kind = scores ? "ForSequenceClassification" : "ForCausalLM";
  text += std::string("pipeline_tag: ") + (scores ? "\"text-classification\"" : "\"text-generation\"");
  text += "\ntags: [\"sealift\"" + std::string(is_adapter ? ", \"lora\"" : "") + "]\n---\n";
  text += "# " + one_line(base) + (is_adapter ? ", adapted\n\n" : ", fine-tuned\n\n");
  text += how_trained(result) + " The last training loss is " + one_line(result.at("final_loss")) + ". " +
          best_loss(result) +
          "\n\nIts licence is that of the base model and of the data; neither is stated here.\n\n## Data\n\n" +
          data_rows(facts) + "\n## Open it\n\n```python\n";
  const std::string from = is_adapter ? "peft" : "transformers",
                    type = (is_adapter ? "AutoPeftModel" : "AutoModel") + kind;
  text += "from " + from + " import " + type + "\nmodel = " + type + ".from_pretrained(\"this folder\")\n";
  return text + "```\n\nHow it was trained is in `training_card.md` beside this folder.\n";
}

std::string training_card(const OrderedJson& result, const CardFacts& facts) {
  std::string text = "# Training of " + one_line(folder_name(facts.base)) + "\n\n" + how_trained(result) + " " +
                     best_loss(result) + "\n\n| | |\n|---|---|\n";
  text +=
      table_row("base model", facts.base) + table_row("family", facts.family) + table_row("task", result.at("task"));
  for (const auto* key : {"parallel_method", "world_size", "resumed_after", "skipped_steps", "stopped_early", "seconds",
                          "torch_version"}) {
    if (result.contains(key)) text += table_row(key, result.at(key));
  }
  if (result.contains("bundle")) text += table_row("bundle", result.at("bundle"));
  text += "\n## Data\n\n" + data_rows(facts) + "\n## Losses\n\n" + loss_rows(result);
  if (!result.at("evaluations").empty()) {
    text += "\n| evaluation after step | loss |\n|---|---|\n";
    for (const auto& each : result.at("evaluations")) text += table_row(each.at("step").dump(), each.at("loss"));
  }
  text += "\n## Settings that change the numbers\n\n| setting | value |\n|---|---|\n";
  for (const auto& [name, value] : result.at("configuration").items()) text += table_row(name, value);
  return text + "\n`result.json` beside this page has every loss in full precision.\n";
}

void write_cards(FineTuning& tuning, const OrderedJson& result) {
  const auto [options, training] = std::tie(tuning.options, tuning.training);
  if (training.ended_by) return;
  CardFacts facts{.base = options.model, .family = tuning.model->config().family, .data = {}, .examples = {}};
  const auto add = [&](const std::string& name, const TokenFile& file) {
    facts.data[name] = file->header().content_sha256;
    facts.examples[name] = static_cast<std::int64_t>(file->examples());
  };
  add("dataset", tuning.data);
  if (tuning.evaluation) add("val_dataset", *tuning.evaluation);
  auto told = result;
  told["bundle"] = own_bundle();
  told["task"] = to_string(options.task);
  save_with_patience(training.place.is_first(), [&] {
    train::detail::all_saved(training.world.world, "saving the cards", [&]() -> std::string {
      if (!training.place.is_first()) return "";
      const std::filesystem::path out = options.out;
      if (options.has_adapters()) write_whole(out / "adapter" / "README.md", model_card(told, facts, true));
      for (const auto* whole : {"model", "merged"}) {
        const bool is_there = std::string(whole) == "model" ? !options.has_adapters() : options.merge_lora;
        if (is_there) write_whole(out / whole / "README.md", model_card(told, facts, false));
      }
      write_whole(out / "training_card.md", training_card(told, facts));
      return "";
    });
  });
}

}  // namespace sealift::trainer
