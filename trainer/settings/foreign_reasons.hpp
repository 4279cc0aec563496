// SPDX-License-Identifier: Apache-2.0
// Why a key of another project changes nothing here, or what to do instead, where many keys share the words.
// Of the tables of keys alone.
// One home, so that the same thing is said in the same words.
#pragma once

namespace sealift::trainer {

inline constexpr const char* kNoEffect = "it does not change the numbers";
inline constexpr const char* kOfOthers = "it is read by a feature that is refused where it is switched on";
inline constexpr const char* kLeaveOut = "leave it out";
inline constexpr const char* kAddTokens = "add them to the model's tokenizer and embedding first";

}  // namespace sealift::trainer
