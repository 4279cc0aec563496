// SPDX-License-Identifier: Apache-2.0
// LoRA of a Qwen under fsdp: load without memory, adapt, spread, step, save the adapter. QLoRA is one line more.
// After 02_from_ddp_to_fsdp: the model comes from a folder in Hugging Face's layout, and PEFT opens what is saved.
// Without arguments it makes a tiny model and adapts it on two ranks that are threads, so that it runs anywhere.
//   03_lora [MODEL_FOLDER ADAPTER_FOLDER]    environment: a launcher's variables
#include "trainer/models/hf_folder.hpp"
#include "trainer/tuning/peft_format.hpp"
#include "trainer/tuning/qlora.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

using namespace sealift::train;
using namespace sealift::trainer;
namespace fs = std::filesystem;

/// Twenty steps of LoRA or QLoRA; the last loss.
double adapt(const fs::path& folder, const fs::path& adapter, const World& world, bool four_bits) {
  const LoraOptions lora{.rank = 8, .alpha = 16, .target_modules = {"all-linear"}};
  const auto config = read_decoder_config(folder);
  std::optional<MetaDevice> meta(std::in_place);
  Shardable<Decoder> model(config);  // shapes only
  meta.reset();
  add_lora(*model, lora);  // freezes the rest

  Policy policy{.method = ParallelMethod::Fsdp};
  if (four_bits) policy.store = store_projections(*model);  // QLoRA
  const auto base = model_folder_source(folder, config);
  LoraSource source(*base, lora, /*seed=*/1);
  auto parallel = parallelize(*model, world, policy, &source);  // each rank reads its part
  FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
  double last = 0;
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const auto ids = (torch::arange(16).view({2, 8}) * 3 + world.rank) % config.vocabulary;
    const auto [log_probabilities, unused] = model(TokenBatch{.ids = ids, .labels = (ids + 3) % config.vocabulary});
    const auto loss = -log_probabilities.mean();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step % 19 == 0) std::printf("rank %ld, step %2d: loss %.4f\n", world.rank, step, last);
  }
  save_adapter(adapter, *model, parallel, folder);
  return last;
}

/// A model folder with values of our own, as one from a bundle would be.
void make_model(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 64, "max_position_embeddings": 64, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "dtype": "float32"})";
  const auto config = read_decoder_config(folder);
  Shardable<Decoder> model(config);
  auto values = first_values(config, 1);
  auto parallel = parallelize(*model, World{}, {.method = ParallelMethod::None}, &values);
  export_safetensors(folder / "model.safetensors", *model, parallel);
}

int main(int argc, char** argv) {
  if (argc == 3) return adapt(argv[1], argv[2], connect(parse_launch()), /*four_bits=*/false) > 0 ? 0 : 1;
  setenv("TORCH_FR_BUFFER_SIZE", "0", 1);  // c10d's flight recorder is not safe for ranks that are threads
  at::set_num_threads(1);
  const auto work = fs::temp_directory_path() / ("03_lora." + std::to_string(getpid()));
  make_model(work / "model");
  bool good = true;
  for (const bool four_bits : {false, true}) {
    const auto adapter = work / (four_bits ? "qlora" : "lora");
    const auto store = c10::make_intrusive<c10d::HashStore>();
    const auto rank = [&](std::int64_t number) {
      at::set_num_threads(1);
      return adapt(work / "model", adapter, {.store = store, .rank = number, .size = 2}, four_bits);
    };
    std::thread second([&] { rank(1); });
    good = rank(0) < 3.5 && good;  // log(64) = 4.2 before the first step
    second.join();
    good = read_adapter_config(adapter).rank == 8 && good;
  }
  fs::remove_all(work);
  return good ? 0 : 1;
}
