// SPDX-License-Identifier: Apache-2.0
// A bundle that was opened anew, since its files changed, is another one here and begins without a fault.
#include "offline_repo/holdings/rotten_chunks.hpp"

namespace sealift::offline_repo {

namespace {

bool touches(const bundle::Entry& entry, const bundle::ChunkLayout& layout, const std::set<std::uint64_t>& chunks) {
  if (entry.absent || entry.stored_size == 0) return false;
  const auto first = chunks.lower_bound(layout.at(entry.offset));
  return first != chunks.end() && *first <= layout.at(entry.offset + entry.stored_size - 1);
}

}  // namespace

bool RottenChunks::add(const InBundle& in, std::uint64_t chunk) {
  const std::lock_guard lock(guard_);
  std::erase_if(chunks_, [](const auto& one) { return one.first.expired(); });
  const bool fresh = chunks_[in].insert(chunk).second;
  if (fresh) ++changes_;
  return fresh;
}

void RottenChunks::remove(const InBundle& in, std::uint64_t chunk) {
  const std::lock_guard lock(guard_);
  const auto found = chunks_.find(in);
  if (found != chunks_.end() && found->second.erase(chunk) > 0) ++changes_;
}

void RottenChunks::clear() {
  const std::lock_guard lock(guard_);
  if (!chunks_.empty()) ++changes_;
  chunks_.clear();
}

std::set<std::uint64_t> RottenChunks::of(const InBundle& in) const {
  const std::lock_guard lock(guard_);
  const auto found = chunks_.find(in);
  return found == chunks_.end() ? std::set<std::uint64_t>() : found->second;
}

std::uint64_t RottenChunks::changes() const {
  const std::lock_guard lock(guard_);
  return changes_;
}

Contents without(const Contents& contents, const std::set<std::uint64_t>& chunks) {
  if (chunks.empty()) return contents;
  const bundle::ChunkLayout& layout = contents->in->payload().layout();
  auto left = std::make_shared<BundleContents>(*contents);
  std::erase_if(left->wheels, [&](const IndexedWheel& wheel) { return touches(*wheel.entry, layout, chunks); });
  for (const bundle::Entry& entry : contents->in->manifest().entries)
    if (touches(entry, layout, chunks)) left->rotten.insert(entry.path.text());
  if (left->rotten.empty()) left->rotten.insert("a part that is in no entry");
  return left;
}

}  // namespace sealift::offline_repo
