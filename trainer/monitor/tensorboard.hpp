// SPDX-License-Identifier: Apache-2.0
// Scalars for TensorBoard: an event file that grows by one record per scalar.
// The monitor of rank 0 writes one when `tensorboard` names a folder.
// The format is a dozen bytes around a name and a float, so that it needs neither protobuf nor TensorFlow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace sealift::trainer {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

class TensorBoard {
 public:
  /// Makes `folder` and a new event file in it; throws std::runtime_error if it cannot. Earlier files stay, and
  /// TensorBoard shows them together. Its name comes after theirs, also where the clock was set back, since TensorBoard
  /// reads files by their names and nothing of one that comes before what it has read.
  explicit TensorBoard(const std::filesystem::path& folder);

  /// From `step` on all is written anew, by a run that goes on from a checkpoint: TensorBoard forgets what it was told
  /// of this step and later ones, so that no curve runs backwards.
  void restart(std::int64_t step);

  /// `seconds`: since 1970. On disk when this returns, but for the system's cache.
  void add(std::int64_t step, const std::string& name, double value, double seconds);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write(std::string_view event);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace sealift::trainer
