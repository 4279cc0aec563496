// SPDX-License-Identifier: Apache-2.0
// PowerSGD (Vogels et al., arXiv:1905.13727): large matrices of gradients are summed as two factors of low rank.
// A transport for ddp's buffers, and where a job's transport is chosen.
// Follows PyTorch's powerSGD_hook, number for number where it can. Different on purpose: small gradients and first
// factors travel together (two collectives for a buffer, not three); a matrix without gradient, or one that is not
// finite, spoils no later step (PyTorch's factors become NaN for good); and Gram-Schmidt runs twice, since a matrix of
// lower rank than its factors comes out wrong otherwise, by as much as itself.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/power_sgd.hpp>
#include <sealift/train/flat/transport.hpp>

namespace sealift::train {

/// One parameter's gradient in a buffer.
struct BufferPart {
  std::string name;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes = {};
};

/// Sums one buffer by PowerSGD. M [n, m] of every rank, with its error added, is replaced by P Q^T: P = sum of M Q,
/// orthonormal; Q = sum of M^T P. What is too small to gain travels as it is.
class PowerSgdTransport final : public Transport {
 public:
  PowerSgdTransport(std::shared_ptr<PowerSgd> shared, std::vector<BufferPart> parts);

  SEALIFT_BODY Transfer reduce_scatter(at::Tensor, at::Tensor, Collectives, const std::string& label,
                                       std::uint64_t) override;

  SEALIFT_BODY Transfer all_reduce(at::Tensor buffer, Collectives group, const std::string& label,
                                   std::uint64_t detail) override;

 private:
  struct Shape {
    std::int64_t n, m, rank;
    std::vector<std::size_t> members;
  };
  /// Matrices [n, m] that are multiplied together: one, or all of a shape.
  struct Matrices {
    std::int64_t n, m, rank;
    std::vector<std::size_t> members;  ///< parts
    at::Tensor q = {}, error = {};     ///< [count, m, rank], [count, n, m]

    std::int64_t count() const { return static_cast<std::int64_t>(members.size()); }
  };

  at::Tensor view(const at::Tensor& buffer, const Matrices& matrices, std::size_t member) const;

  /// Makes orthonormal first factors: from the step before, loaded ones, or random ones.
  void prepare(const at::Tensor& buffer);

  /// Makes a place for what the matrices remember, with what is remembered. Whether all first factors were.
  bool adopt(Matrices& each, const at::Tensor& buffer);

  /// `memory` is at `place` from now on. Whether it had a value.
  static bool move(at::Tensor& memory, at::Tensor place);

  void draw(const at::Tensor& buffer);

  /// The gradients of the matrices [count, n, m], with the errors added, which from now on hold a copy of them.
  at::Tensor take(Matrices& each, const at::Tensor& buffer) const;

  void put_plain(at::Tensor buffer, const at::Tensor& first) const;

  at::Tensor second_factor(const at::Tensor& second, std::int64_t& end, const Matrices& each) const;

  /// Q = M^T P for the summed P, which becomes orthonormal.
  void multiply_back(const at::Tensor& second, const std::vector<at::Tensor>& values, std::vector<at::Tensor>& ps,
                     std::int64_t ranks) const;

  /// Sum of M = P Q^T; a rank's error is what its M has beyond its share of that.
  void decompress(const at::Tensor& buffer, const at::Tensor& second, std::vector<at::Tensor> values,
                  const std::vector<at::Tensor>& ps, std::int64_t ranks);

  std::shared_ptr<PowerSgd> shared_;
  std::vector<BufferPart> parts_;
  std::vector<std::pair<std::int64_t, std::int64_t>> plain_;  ///< offset and size of what is not compressed
  std::vector<Shape> shapes_;
  std::vector<Matrices> matrices_;
  std::int64_t plain_numel_ = 0, p_numel_ = 0, q_numel_ = 0;
};

/// The transport that a job asks for, of a buffer of `dtype` that holds `parts`. `power_sgd` is used by PowerSGD only.
std::unique_ptr<Transport> make_transport(GradientCompression compression, at::ScalarType dtype,
                                          std::shared_ptr<PowerSgd> power_sgd, std::vector<BufferPart> parts);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/power_sgd_transport_inl.hpp>
#endif
