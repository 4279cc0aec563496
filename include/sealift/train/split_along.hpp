// SPDX-License-Identifier: Apache-2.0
// Modules whose parameters differ from rank to rank along an axis of the mesh, as the experts of a mixture do: which
// those are, and the part of each that this rank keeps.
// Beside `unit_plan`; `parallelize` cuts after its checks and gives the parts flats and groups of their own.
// A model is built whole on every mesh, on the meta device if it is large, so that sources, checkpoints and exports
// know whole parameters only.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/first_values.hpp>

namespace sealift::train {

/// A module whose own parameters (not its children's) are cut along their first dimension over an axis of the mesh:
/// rank i along it keeps the i-th of equal parts, and the module brings its inputs to the ranks that have what they
/// need. In a mesh without the axis it stays whole.
class SplitAlong {
 public:
  virtual ~SplitAlong() = default;

  virtual const char* axis() const = 0;

  /// The parameters were cut over the ranks of `group`. While `*silent` (a rank that `Join` goes on with after its data
  /// ended), the module sends nothing of its own inputs and answers what does not depend on the others, but takes part
  /// in every exchange, forward and backward, with what the others send. From `parallelize`, once.
  virtual void set_group(Collectives group, std::shared_ptr<const bool> silent) = 0;
};

namespace detail {

/// What a cut parameter is a part of.
struct WholeOf {
  at::Tensor part;
  std::vector<std::int64_t> sizes;  ///< of the whole
  std::int64_t first = 0;           ///< element of it with which the part begins
};

/// The modules of a model that are split, and their parameters.
struct Split {
  Collectives axis;     ///< the ranks that together hold a whole
  Groups groups;        ///< of the parts: ranks that hold the same ones, or shards of them
  Collectives holders;  ///< ranks that together hold all parts and all shards once
  std::vector<SplitAlong*> modules;
  std::map<std::string, WholeOf> wholes;  ///< by the parameter's name

  bool contains(const std::string& name) const { return wholes.contains(name); }
};

void find_split(torch::nn::Module& module, const std::string& path, const std::string& axis, Split& split);

/// What of `model` is split over an axis of the world's mesh; nothing where the mesh has no such axis. Throws unless
/// parameters can be cut. Collective over the world.
Split find_split(torch::nn::Module& model, const Groups& groups);

/// Leaves this rank's part of each split parameter: without memory of its values where a `source` gives them, else of
/// rank 0's if `from_rank_0`, else of its own. Collective over the world in the second case.
void cut(const Split& split, Groups& groups, const Source* source, bool from_rank_0);

/// Reads parts of split parameters as what they are: ranges of whole ones.
class SourceOfParts final : public Source {
 public:
  SourceOfParts(Source& wholes, const Split& split) : wholes_(wholes), split_(split) {}

  bool has(const std::string& name) const override { return wholes_.has(name); }

  SEALIFT_BODY void read(const std::string& name, at::IntArrayRef sizes, std::int64_t begin, at::Tensor out) override;

 private:
  Source& wholes_;
  const Split& split_;
};

}  // namespace detail

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/split_along_inl.hpp>
#endif
