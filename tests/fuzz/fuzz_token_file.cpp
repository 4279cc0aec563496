// SPDX-License-Identifier: Apache-2.0
// A token file that is accepted has sequences that cover its tokens, and each of them can be read or is refused.
#include "trainer/data/token_view.hpp"

#include "tests/fuzz/fuzz.hpp"

#include <stdexcept>

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

/// Whether `action` is not refused.
template <class Action>
bool taken(const Action& action) {
  try {
    action();
    return true;
  } catch (const std::invalid_argument& error) {
    must(error.what()[0] != '\0', "a refusal says why");
    return false;
  }
}

void read_all(const TokenView& view) {
  std::uint64_t tokens = 0;
  for (std::uint64_t index = 0; index < view.header().sequences; ++index) {
    tokens += view.length(index);
    taken([&] {
      const auto sequence = view.sequence(index);
      must(sequence.size() == view.length(index) && sequence.size() > 0, "a sequence has its length");
      for (std::size_t at = 0; at < sequence.size(); ++at) {
        must(sequence.token(at) < view.header().vocabulary, "a token is of the vocabulary");
        (void)sequence.counts(at);
      }
    });
  }
  must(tokens == view.header().tokens, "sequences cover all tokens");
  for (std::size_t example = 0; example < view.examples(); ++example) taken([&] { (void)view.value(example); });
}

}  // namespace

FUZZ(text) {
  taken([&] { read_all(TokenView(std::as_bytes(std::span(text.data(), text.size())), "fuzzed")); });
}
