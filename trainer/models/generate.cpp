// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/generate.hpp"

#include <algorithm>

namespace sealift::trainer {
namespace {

/// While it lives, the model is in evaluation mode.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& model) : model_(model), was_training_(model.is_training()) { model.eval(); }
  ~Evaluating() { model_.train(was_training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  torch::nn::Module& model_;
  bool was_training_;
};

/// Drawn on the CPU, whose generator gives the same on every machine. `logits`: [1, vocabulary]
std::int64_t choose(const at::Tensor& logits, double temperature, const at::Generator& random) {
  const auto row = logits[0].to(at::kCPU, at::kFloat);
  if (temperature <= 0) return row.argmax().item<std::int64_t>();
  return at::multinomial((row / temperature).softmax(0), 1, /*replacement=*/false, random).item<std::int64_t>();
}

/// The token that all ranks go on with.
std::int64_t next_token(const at::Tensor& logits, const GenerateOptions& options, const at::Generator& random) {
  auto ranks = options.ranks;
  const auto token = torch::zeros({1}, at::kLong);
  if (ranks.rank() == 0) token.fill_(choose(logits, options.temperature, random));
  ranks.broadcast(token, "chosen token").wait();
  return token.item<std::int64_t>();
}

/// Whether the next token is the first beyond the context of pretraining, from which on all keys turn otherwise: those
/// of the cache are of no use then. transformers' Phi3ForCausalLM::prepare_inputs_for_generation.
bool turns_anew(const DecoderConfig& config, const KeyValueCache& cache) {
  return config.rope.scaling == RopeScaling::Long && cache.length == config.rope.original_positions;
}

}  // namespace

std::vector<std::int64_t> generate(train::Shardable<Decoder>& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options) {
  TORCH_CHECK(!prompt.empty() && options.max_tokens > 0, "a prompt of ", prompt.size(), " tokens with ",
              options.max_tokens, " new ones; expected at least one of each");
  at::NoGradGuard no_grad;
  const Evaluating evaluating(*model);
  const auto& ends = model->config().end_tokens;
  const auto random = at::detail::createCPUGenerator(options.seed);
  const auto device = model->parameters().front().device();
  KeyValueCache cache(model->config().layers, static_cast<std::int64_t>(prompt.size()) + options.max_tokens);
  std::vector<std::int64_t> tokens;
  auto next = torch::tensor(prompt, at::kLong);
  while (static_cast<std::int64_t>(tokens.size()) < options.max_tokens) {
    const auto logits = model->call_gathered(&DecoderImpl::next_logits, next.unsqueeze(0).to(device), cache);
    tokens.push_back(next_token(logits, options, random));
    if (std::find(ends.begin(), ends.end(), tokens.back()) != ends.end()) break;
    next = torch::tensor({tokens.back()}, at::kLong);
    if (!turns_anew(model->config(), cache)) continue;
    cache.length = 0;
    next = at::cat({torch::tensor(prompt, at::kLong), torch::tensor(tokens, at::kLong)});
  }
  return tokens;
}

}  // namespace sealift::trainer
