// SPDX-License-Identifier: Apache-2.0
// Saves a checkpoint: every rank writes its part and makes it durable, then rank 0 completes it with an index.
// After a training step: shards and optimizer -> host tensors -> rank files -> (all ranks done) -> index.json, by
// rename.
// Files may be written in the background, but ranks may not agree there: a second thread's collectives would mix with
// those of training. So `wait` writes the index, on the thread that trains.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/checkpoint_index.hpp>
#include <sealift/train/parallel.hpp>

#include <future>

namespace sealift::train {

struct SaveOptions {
  std::int64_t keep_last = 0;  ///< whole checkpoints to keep in the folder, including the new one; 0: all
  bool frozen = true;          ///< false: without frozen parameters, which a run gets from its source again
};

namespace detail {

/// Every rank's `text`, in rank order, each cut at 1000 bytes. Collective.
std::vector<std::string> gather_texts(Collectives& world, const std::string& text);

/// Does `work`, which returns a text, and waits until all ranks have done theirs. When one fails all of them throw, so
/// that none waits for a rank that gave up. Returns every rank's text. Collective.
template <class Work>
std::vector<std::string> all_or_none(Collectives& world, const std::string& doing, Work work) {
  std::exception_ptr error;
  std::string text;
  try {
    text = "+" + work();
  } catch (const c10::Error& caught) {
    error = std::current_exception();
    text = std::string("-") + caught.what_without_backtrace();
  } catch (const std::exception& caught) {
    error = std::current_exception();
    text = std::string("-") + caught.what();
  }
  auto texts = gather_texts(world, text);
  if (error) std::rethrow_exception(error);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    TORCH_CHECK(texts[rank].starts_with('+'), doing, ": rank ", rank, " could not: ", texts[rank].substr(1));
    texts[rank].erase(0, 1);
  }
  return texts;
}

/// The first element of `parameter` that this rank writes, and how many: ranks that hold the same elements share them
/// evenly, so each is written once and all ranks write.
std::pair<std::int64_t, std::int64_t> written_range(const ShardedParameter& parameter);

/// The default random generators of the host and of the accelerator, if the model is on one.
std::vector<std::pair<std::string, at::Generator>> generators(const Parallel& parallel);

/// Whether a checkpoint has `parameter`; throws for one whose elements are not there to be saved.
bool is_saved(const ShardedParameter& parameter, bool frozen);

/// The index without the digests, which are known only after everything was written.
CheckpointIndex make_index(const torch::nn::Module& model, Parallel& parallel, torch::optim::Optimizer* optimizer,
                           const TrainingState& state, bool frozen);

}  // namespace detail

/// A save whose files are being written. `wait` completes the checkpoint; without it an unfinished one is left, which
/// the next save removes. Training may go on meanwhile, since everything was copied.
class [[nodiscard]] AsyncSave {
 public:
  AsyncSave(std::filesystem::path path, CheckpointIndex index, Collectives world, SaveOptions options,
            std::future<std::vector<FileDigest>> written);

  /// Waits until all ranks' files are durable, writes the index and removes old checkpoints; returns the checkpoint's
  /// folder. Throws on every rank when one could not write. Collective, on the thread that trains.
  std::filesystem::path wait();

 private:
  std::filesystem::path path_;
  CheckpointIndex index_;  ///< of rank 0; other ranks' is not used
  Collectives world_;
  SaveOptions options_;
  std::future<std::vector<FileDigest>> written_;  ///< of the rank's file and, on rank 0, of the buffers
};

namespace detail {

AsyncSave start_save(const std::filesystem::path& folder, const torch::nn::Module& model, Parallel& parallel,
                     torch::optim::Optimizer* optimizer, const TrainingState& state, SaveOptions options,
                     bool in_background);

}  // namespace detail

/// Saves `model`'s parameters and buffers, `optimizer` (null: none), random generators and `state` into
/// FOLDER/step-N, N being `state.step`; returns that folder. `folder` is one that all ranks see. Collective.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const torch::nn::Module& model,
                                      Parallel& parallel, torch::optim::Optimizer* optimizer,
                                      const TrainingState& state, SaveOptions options = {});

/// The same, but returns when everything is copied; another thread writes the files. Every rank must `wait` for it, at
/// the same place of its program, before it starts the next save into this folder. Collective.
AsyncSave save_checkpoint_async(const std::filesystem::path& folder, const torch::nn::Module& model, Parallel& parallel,
                                torch::optim::Optimizer* optimizer, const TrainingState& state,
                                SaveOptions options = {});

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/checkpoint_save_inl.hpp>
#endif
