// SPDX-License-Identifier: Apache-2.0
// A token file as JSON, read by the reader that trains: what tokenize_test.py compares with transformers.
// Checked in full first, so that what the scripts write is held to what the reader asks for.
//   token_file_dump FILE
#include "trainer/data/token_file.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

using namespace sealift::trainer;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto file = TokenFile::open(argv[1]);
  file.check_content();
  const auto& header = file->header();
  nlohmann::json result = {{"kind", name_of(header.kind)},         {"token_bytes", header.token_bytes},
                           {"vocabulary", header.vocabulary},      {"examples", header.examples},
                           {"tokenizer", header.tokenizer_sha256}, {"template", header.template_sha256},
                           {"sha256", header.content_sha256},      {"ids", nlohmann::json::array()},
                           {"counts", nlohmann::json::array()},    {"values", nlohmann::json::array()}};
  for (std::uint64_t index = 0; index < header.sequences; ++index) {
    const auto sequence = file->sequence(index);
    std::vector<std::uint32_t> ids;
    std::vector<int> counts;
    for (std::size_t at = 0; at < sequence.size(); ++at) {
      ids.push_back(sequence.token(at));
      counts.push_back(sequence.counts(at));
    }
    result["ids"].push_back(ids);
    result["counts"].push_back(counts);
  }
  if (header.kind >= ExampleKind::Preference)
    for (std::size_t example = 0; example < file->examples(); ++example)
      result["values"].push_back(file->value(example));
  std::cout << result.dump() << '\n';
  return 0;
}
