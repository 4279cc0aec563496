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

/// What was to be written is not, on every rank: a full disk, a quota, a folder that went away. Thrown by all ranks
/// alike and after all have tried, so a run may go on and try again; what was whole before still is.
class SaveFailed : public c10::Error {
 public:
  explicit SaveFailed(const std::string& what) : Error(what) {}

  std::int64_t bytes = 0;        ///< of a checkpoint: what it takes, over all ranks
  std::filesystem::path folder;  ///< ... and the one that it is to be in
};

namespace detail {

/// Every rank's `text`, in rank order, each cut at 1000 bytes. Collective.
std::vector<std::string> gather_texts(Collectives& world, const std::string& text);

/// What all ranks came to.
struct Outcomes {
  std::vector<std::string> texts;  ///< of each rank, what its work returned
  std::exception_ptr own;          ///< this rank's error, if it has one
  std::string failure;             ///< of the first rank that failed, with its number unless it is this one; or empty
};

/// Does `work`, which returns a text, and waits until all ranks have done theirs. Collective.
template <class Work>
Outcomes outcomes_of(Collectives& world, const std::string& doing, Work work) {
  Outcomes result;
  std::string text;
  try {
    text = "+" + work();
  } catch (const c10::Error& caught) {
    result.own = std::current_exception();
    text = std::string("-") + caught.what_without_backtrace();
  } catch (const std::exception& caught) {
    result.own = std::current_exception();
    text = std::string("-") + caught.what();
  }
  result.texts = gather_texts(world, text);
  if (result.own) result.failure = text.substr(1);
  for (std::size_t rank = 0; rank < result.texts.size(); ++rank) {
    auto& one = result.texts[rank];
    if (!one.starts_with('+') && result.failure.empty()) {
      result.failure = c10::str(doing, ": rank ", rank, " could not: ", one.substr(1));
    }
    one.erase(0, 1);
  }
  return result;
}

/// Does `work` on all ranks. When one fails all of them throw, so that none waits for a rank that gave up. Returns
/// every rank's text. Collective.
template <class Work>
std::vector<std::string> all_or_none(Collectives& world, const std::string& doing, Work work) {
  auto outcomes = outcomes_of(world, doing, std::move(work));
  if (outcomes.own) std::rethrow_exception(outcomes.own);
  TORCH_CHECK(outcomes.failure.empty(), outcomes.failure);
  return std::move(outcomes.texts);
}

/// The same for work that writes: SaveFailed on every rank when one could not. Collective.
template <class Work>
std::vector<std::string> all_saved(Collectives& world, const std::string& doing, Work work) {
  auto outcomes = outcomes_of(world, doing, std::move(work));
  if (!outcomes.failure.empty()) throw SaveFailed(outcomes.failure);
  return std::move(outcomes.texts);
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
  AsyncSave(std::filesystem::path path, std::int64_t bytes, CheckpointIndex index, Collectives world,
            SaveOptions options, std::future<std::vector<FileDigest>> written);

  /// Waits until all ranks' files are durable, writes the index and removes old checkpoints; returns the checkpoint's
  /// folder. SaveFailed on every rank when one could not write, and nothing is left of it. Collective, on the thread
  /// that trains.
  std::filesystem::path wait();

 private:
  std::filesystem::path path_;
  std::int64_t bytes_;     ///< of all ranks' tensors
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
/// FOLDER/step-N, N being `state.step`; returns that folder. `folder` is one that all ranks see. SaveFailed on every
/// rank when one could not write. Collective.
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
