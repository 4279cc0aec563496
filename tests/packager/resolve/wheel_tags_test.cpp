// SPDX-License-Identifier: Apache-2.0
// Which wheels fit a target, and which fits best.
#include "packager/resolve/wheel_tags.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace sealift;
using packager::fit_wheel;

namespace {

const bundle::Target kGlibc228{.arch = "x86_64", .glibc = {2, 28}};

std::optional<packager::WheelFit> fit(const std::string& tags) {
  return fit_wheel("demo-1.0-" + tags + ".whl", "3.11", kGlibc228);
}

}  // namespace

TEST_CASE("wheels are ranked as PEP 425 orders their tags, the nearest manylinux first and any last") {
  const std::vector<std::string> best_first = {"cp311-cp311-manylinux_2_28_x86_64",
                                               "cp311-cp311-manylinux_2_27_x86_64",
                                               "cp311-cp311-manylinux2014_x86_64",
                                               "cp311-cp311-manylinux2010_x86_64",
                                               "cp311-cp311-manylinux1_x86_64",
                                               "cp311-cp311-linux_x86_64",
                                               "cp311-abi3-manylinux_2_17_x86_64",
                                               "cp311-none-manylinux_2_28_x86_64",
                                               "cp310-abi3-manylinux_2_28_x86_64",
                                               "cp37-abi3-manylinux_2_28_x86_64",
                                               "py311-none-manylinux_2_28_x86_64",
                                               "py3-none-manylinux_2_28_x86_64",
                                               "py310-none-manylinux_2_28_x86_64",
                                               "cp311-none-any",
                                               "py311-none-any",
                                               "py3-none-any",
                                               "py310-none-any"};
  for (std::size_t i = 0; i + 1 < best_first.size(); ++i) {
    INFO(best_first[i], " before ", best_first[i + 1]);
    REQUIRE(fit(best_first[i]));
    REQUIRE(fit(best_first[i + 1]));
    CHECK(fit(best_first[i])->rank < fit(best_first[i + 1])->rank);
  }
}

TEST_CASE("wheels for another Python, ABI, system, architecture or a newer glibc do not fit") {
  for (const std::string tags :
       {"cp312-cp312-manylinux_2_28_x86_64", "cp310-cp310-manylinux_2_28_x86_64", "cp312-abi3-manylinux_2_28_x86_64",
        "cp311-cp311d-manylinux_2_28_x86_64", "cp311-cp311t-manylinux_2_28_x86_64", "py2-none-any", "py312-none-any",
        "cp311-cp311-win_amd64", "cp311-cp311-macosx_11_0_arm64", "cp311-cp311-musllinux_1_2_x86_64",
        "cp311-cp311-manylinux_2_28_aarch64", "cp311-cp311-manylinux_2_31_x86_64", "cp311-cp311-manylinux_3_1_x86_64",
        "cp311-cp311-manylinux__x86_64", "pp311-pypy311_pp73-manylinux_2_28_x86_64"}) {
    INFO(tags);
    CHECK_FALSE(fit(tags));
  }
  CHECK_FALSE(fit_wheel("demo-1.0.tar.gz", "3.11", kGlibc228));
}

TEST_CASE("an aarch64 target takes wheels of its own manylinux, and those for any machine") {
  const bundle::Target arm{.arch = "aarch64", .glibc = {2, 28}};
  const auto on_arm = [&](const std::string& tags) { return fit_wheel("torch-2.11.0-" + tags + ".whl", "3.11", arm); };
  CHECK(on_arm("cp311-cp311-manylinux_2_28_aarch64")->glibc == bundle::GlibcVersion{2, 28});
  CHECK(on_arm("py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64")->glibc == bundle::GlibcVersion{2, 17});
  CHECK(on_arm("py3-none-any"));
  CHECK_FALSE(on_arm("cp311-cp311-manylinux_2_28_x86_64"));
  CHECK_FALSE(on_arm("cp311-cp311-manylinux_2_34_aarch64"));
  CHECK_FALSE(on_arm("cp311-cp311-macosx_11_0_arm64"));
}

TEST_CASE("a wheel with several tags is as good as its best one and needs the oldest glibc that it promises") {
  const auto two = fit("cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64");
  REQUIRE(two);
  CHECK(two->rank == fit("cp311-cp311-manylinux_2_28_x86_64")->rank);
  CHECK(two->glibc == bundle::GlibcVersion{2, 24});
  CHECK(fit("py2.py3-none-any")->rank == fit("py3-none-any")->rank);
  CHECK(fit("cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_31_x86_64")->glibc ==
        bundle::GlibcVersion{2, 17});
  CHECK(fit("py3-none-any")->glibc == bundle::GlibcVersion{});
}
