// SPDX-License-Identifier: Apache-2.0
// The tensors in a forward's arguments and results: alone, or in tuples, vectors, arrays and optionals.
// `unit_graph` hooks them.
// Types are walked at compile time, so that a block keeps its own signature.
#pragma once

#include <torch/torch.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

namespace sealift::train::detail {

/// Calls `visit` on every tensor in `value`; other values are skipped.
template <class Value, class Visit>
void for_each_tensor(Value& value, const Visit& visit) {
  if constexpr (std::is_same_v<std::remove_const_t<Value>, at::Tensor>) {
    visit(value);
  } else if constexpr (requires { std::tuple_size<std::remove_const_t<Value>>::value; }) {
    std::apply([&](auto&... parts) { (for_each_tensor(parts, visit), ...); }, value);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) for_each_tensor(*value, visit);
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       }) {
    for (auto& part : value) for_each_tensor(part, visit);
  }
}

/// Whether `for_each_tensor` finds the tensors in a `Value`.
template <class Value>
struct HoldsTensors : std::bool_constant<std::is_same_v<Value, at::Tensor>> {};
template <class Value>
struct HoldsTensors<std::optional<Value>> : HoldsTensors<Value> {};
template <class Value, class Allocator>
struct HoldsTensors<std::vector<Value, Allocator>> : HoldsTensors<Value> {};
template <class Value, std::size_t N>
struct HoldsTensors<std::array<Value, N>> : HoldsTensors<Value> {};
template <class... Values>
struct HoldsTensors<std::tuple<Values...>> : std::disjunction<HoldsTensors<Values>...> {};
template <class First, class Second>
struct HoldsTensors<std::pair<First, Second>> : std::disjunction<HoldsTensors<First>, HoldsTensors<Second>> {};

}  // namespace sealift::train::detail
