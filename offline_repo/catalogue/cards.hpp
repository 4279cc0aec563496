// SPDX-License-Identifier: Apache-2.0
// What repositories of hubs say of themselves: the README.md of a model or data set, which hubs call its card.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "sealift/bundle/manifest/hub_catalogue.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::offline_repo {

inline constexpr char kCardFile[] = "README.md";
inline constexpr std::uint64_t kMaxCard = std::uint64_t{256} << 10;  // bytes; a larger one is only a file
inline constexpr std::uint64_t kMaxCards = std::uint64_t{16} << 20;  // of all of a bundle; those beyond are only files

using Cards = std::map<bundle::Digest, std::shared_ptr<const std::string>>;  // by the file's SHA-256

// Each card that `in` carries as it is, read through the checked payload. One that cannot be read is left out: its
// page then has a link to the file, which says what is wrong with it.
Cards read_cards(const bundle::VerifiedBundle& in, const bundle::HubCatalogue& listed);

// The value of `key` in the card's front matter ("---" to "---"), where it is one plain line; else empty.
std::string card_value(std::string_view card, std::string_view key);
// The card without its front matter.
std::string_view card_text(std::string_view card);

}  // namespace sealift::offline_repo
