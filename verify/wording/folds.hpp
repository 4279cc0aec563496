// SPDX-License-Identifier: Apache-2.0
// Long lists said briefly: ranks as ranges, hosts by their numbers, equal devices counted, a thousand culprits by host.
// Between a Verdict and the pages, so that a report of 1,000 ranks is read like one of four.
// Only what is shown is folded; report.json keeps every item.
#pragma once

#include "verify/verdict/verdict.hpp"

namespace sealift::verify {

/// "0-7, 9". Order and repeats do not matter.
std::string folded_numbers(std::vector<std::int64_t> numbers);

/// "gpu[01-03,07], login": names that differ in their last number alone are one item. In the order of first mention.
std::string folded_names(const std::vector<std::string>& names);

/// "8 x NVIDIA H100 80GB HBM3": without their indices, equal devices are one.
std::string folded_devices(const std::vector<std::string>& devices);

/// "ranks 0-7 on gpu01": items of the form "rank N on HOST (DEVICE)" by host when there are more than `most`, others as
/// they are; at most `most` items, and a last one that says how many are left out.
struct FoldedList {
  std::vector<Phrase> items;
  std::size_t left_out = 0;
};
FoldedList folded_culprits(const std::vector<Phrase>& at_fault, std::size_t most);

/// Nodes with equal devices, as one row.
struct NodeGroup {
  std::vector<std::string> hosts;
  std::vector<std::int64_t> ranks;
  std::string devices;
};
std::vector<NodeGroup> folded_nodes(const std::vector<Node>& nodes);

}  // namespace sealift::verify
