// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/row_shape.hpp"

#include <algorithm>

namespace sealift::trainer {
namespace {

bool has_values(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_meta();
}

template <class Number>
at::Tensor numbers(const std::vector<Number>& all, at::Device device) {
  return torch::tensor(all, c10::CppTypeToScalarType<Number>::value).to(device);
}

void look_at_segments(RowShape& shape, const at::Tensor& segments) {
  const auto host = segments.to(at::kCPU, at::kLong).contiguous();
  const auto batch = host.size(0), time = host.size(1);
  const auto* segment = host.const_data_ptr<std::int64_t>();
  std::vector<std::int32_t> starts;
  std::vector<std::int64_t> last;
  for (std::int64_t at = 0; at < batch * time; ++at) {
    const bool begins = at % time == 0 || segment[at] != segment[at - 1];
    const bool ends = (at + 1) % time == 0 || segment[at] != segment[at + 1];
    if (begins) starts.push_back(static_cast<std::int32_t>(at));
    if (ends && segment[at] >= 0) last.push_back(at);
    const bool in_order = at % time == 0 || segment[at] <= segment[at - 1];
    shape.padded_behind = shape.padded_behind && segment[at] >= -1 && segment[at] <= 0 && in_order;
  }
  starts.push_back(static_cast<std::int32_t>(batch * time));
  for (std::size_t i = 1; i < starts.size(); ++i) {
    shape.longest = std::max<std::int64_t>(shape.longest, starts[i] - starts[i - 1]);
  }
  if (!shape.padded_behind) shape.starts = numbers(starts, segments.device());
  shape.last = numbers(last, segments.device());
}

}  // namespace

RowShape row_shape_of(const at::Tensor& segments, const at::Tensor& labels) {
  at::NoGradGuard no_grad;
  RowShape shape;
  if (has_values(segments)) look_at_segments(shape, segments);
  if (!has_values(labels)) return shape;
  const auto labelled = (labels.to(at::kCPU).flatten() != kNoLabel).nonzero().flatten();
  if (labelled.numel() != labels.numel()) shape.labelled = labelled.to(labels.device());
  return shape;
}

}  // namespace sealift::trainer
