// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that look like settings.
#include "trainer/settings/misspelt_variables.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace sealift::trainer;

namespace {

std::string said_of(const char* variable) {
  const std::set<std::string> known = {"learning_rate", "steps", "gradient_accumulation_steps"};
  const char* const variables[] = {"PATH=/bin", variable, nullptr};
  const auto problems = misspelt_variables(variables, known);
  return problems.empty() ? "" : problems.front();
}

}  // namespace

TEST_CASE("a variable that is no setting is told with the setting that was meant") {
  CHECK(said_of("SEALIFT_TRAIN_LEARNIGN_RATE=0.1") ==
        "SEALIFT_TRAIN_LEARNIGN_RATE is set, and is no setting; did you mean SEALIFT_TRAIN_LEARNING_RATE?");
  CHECK(said_of("SEALIFT_TRAIN_GRADIENT_ACUMULATION_STEPS=2") ==
        "SEALIFT_TRAIN_GRADIENT_ACUMULATION_STEPS is set, and is no setting; did you mean "
        "SEALIFT_TRAIN_GRADIENT_ACCUMULATION_STEPS?");
  CHECK(said_of("SEALIFT_TRAIN_LR=0.1") == "SEALIFT_TRAIN_LR is set, and is no setting");
  CHECK(said_of("SEALIFT_TRIAN_STEPS=3") ==
        "SEALIFT_TRIAN_STEPS is set, and is no setting; did you mean SEALIFT_TRAIN_STEPS?");
  CHECK(said_of("SEALIFT_TRAIN_A\nB=3").find('\n') == std::string::npos);
  for (const char* good : {"SEALIFT_TRAIN_STEPS=3", "SEALIFT_TRAIN_LEARNING_RATE=", "SEALIFT_PREFIX=/p",
                           "SEALIFT_VERIFY_STEPS=3", "SEALIFT_PATH=/bin", "SEALIFT_=", "TRAIN_STEPZ=3", "=", ""}) {
    CAPTURE(good);
    CHECK(said_of(good).empty());
  }
  CHECK(misspelt_variables(nullptr, {}).empty());
}

TEST_CASE("settings of every verb are known, and what is none is refused") {
  setenv("SEALIFT_TRAIN_LAYERS", "3", 1);      // of `run`
  setenv("SEALIFT_TRAIN_LORA_RANK", "16", 1);  // of `sft`
  setenv("SEALIFT_TRAIN_PYTHON", "/p", 1);
  setenv("SEALIFT_TRAIN_PRESETS", "/p", 1);
  CHECK_NOTHROW(refuse_misspelt_variables());
  setenv("SEALIFT_TRAIN_LORA_RNK", "16", 1);
  CHECK_THROWS_WITH(refuse_misspelt_variables(), doctest::Contains("did you mean SEALIFT_TRAIN_LORA_RANK?"));
  CHECK_THROWS_WITH(refuse_misspelt_variables(), doctest::Contains("rename the variable, or unset it"));
  for (const char* name : {"LAYERS", "LORA_RANK", "PYTHON", "PRESETS", "LORA_RNK"})
    unsetenv((std::string("SEALIFT_TRAIN_") + name).c_str());
}
