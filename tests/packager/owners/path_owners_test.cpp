// SPDX-License-Identifier: Apache-2.0
// One owner for every installed path.
#include "packager/owners/path_owners.hpp"

#include <doctest/doctest.h>

#include "sealift/bundle/wheel/package_owners.hpp"
#include "tests/support/refusal.hpp"

using sealift::packager::PathOwners;

TEST_CASE("a path with two owners is refused with both names") {
  PathOwners owners;
  owners.claim("lib/a.py", "one.whl");
  owners.claim("lib/b.py", "two.whl");
  CHECK_NOTHROW(owners.check());
  owners.claim("lib/a.py", "two.whl");
  CHECK_REFUSED(owners.check(), Conflict, "lib/a.py: one.whl and two.whl");
}

TEST_CASE("a path that wheels bring with the same bytes is marked, so that one of them is enough") {
  const auto digest = [](const char* text) { return sealift::bundle::sha256(sealift::bundle::as_bytes(text)); };
  PathOwners owners;
  owners.claim("nvidia/__init__.py", "one.whl", digest(""));
  owners.claim("nvidia/__init__.py", "two.whl", digest(""));
  owners.claim("bin/run", "the program", digest("x"));
  owners.claim("bin/run", "one.whl", digest("y"));
  owners.claim("share/x", "the data x");
  owners.claim("share/x", "one.whl", digest("x"));
  REQUIRE(owners.contested().size() == 3);
  CHECK(owners.contested()[0].equal);
  CHECK_FALSE(owners.contested()[1].equal);
  CHECK_FALSE(owners.contested()[2].equal);
  owners.claim("nvidia/__init__.py", "three.whl", digest("other"));
  CHECK_FALSE(owners.contested()[0].equal);
}

TEST_CASE("a file where another package needs a folder is refused") {
  PathOwners owners;
  owners.claim("lib/demo", "one.whl");
  owners.claim("lib/demo/core.py", "two.whl");
  CHECK_REFUSED(owners.check(), Conflict, "lib/demo: one.whl and two.whl, a file of the first and a folder");
}

TEST_CASE("two wheels whose common paths have no folder of their own are told with a rule for each of these") {
  PathOwners owners;  // as rouge and rouge-chinese are
  const std::string packages = "lib/python3.11/site-packages/";
  for (const std::string file : {"bin/rouge_cmd.py", "bin/__init__.py", "tools.py"})
    for (const std::string wheel : {"one-1.0-py3-none-any.whl", "two-1.0-py3-none-any.whl"})
      owners.claim(packages + file, wheel);
  const sealift::bundle::Error error = sealift::test::refusal([&] { owners.check(); });
  INFO(error.what());
  CHECK(sealift::test::mentions(error, "path = \"bin\"\n            package = \"one\""));
  CHECK(sealift::test::mentions(error, "path = \"tools.py\"\n            package = \"one\""));
}

TEST_CASE("two wheels of one library are told once, beside every other two") {
  PathOwners owners;
  for (const std::string file : {"libnccl.so.2", "nccl.h", "LICENSE"})
    for (const std::string wheel : {"nccl_cu12.whl", "nccl_cu13.whl"}) owners.claim("nvidia/nccl/" + file, wheel);
  owners.claim("bin/run", "one.whl");
  owners.claim("bin/run", "two.whl");
  const sealift::bundle::Error error = sealift::test::refusal([&] { owners.check(); });
  CHECK(
      sealift::test::mentions(error, "nvidia/nccl/libnccl.so.2: nccl_cu12.whl and nccl_cu13.whl, and 2 more path(s)"));
  CHECK(sealift::test::mentions(error, "bin/run: one.whl and two.whl"));
}

TEST_CASE("a conflict of two wheels is told with the rule that decides all of it") {
  PathOwners owners;
  const std::string packages = "lib/python3.11/site-packages/";
  for (const std::string wheel :
       {"cuda_bindings-13.5.0-cp311-cp311-linux_x86_64.whl", "cuda_python-12.6-py3-none-any.whl"})
    for (const std::string file : {"cuda/bindings/a.so", "cuda/bindings/sub/b.py", "cuda/ccuda.pxd"})
      owners.claim(packages + file, wheel);
  for (const std::string wheel : {"three-1-py3-none-any.whl", "four-1-py3-none-any.whl"})
    for (const std::string file : {"bin/go", "lib/libgo.so"}) owners.claim(file, wheel);  // no folder holds both
  owners.claim("bin/run", "one-1-py3-none-any.whl");
  owners.claim("bin/run", "two-1-py3-none-any.whl");
  const sealift::bundle::Error error = sealift::test::refusal([&] { owners.check(); });
  INFO(error.what());
  CHECK(sealift::test::mentions(error,
                                "path = \"cuda\"\n            package = \"cuda-bindings\"   # or \"cuda-python\""));
  CHECK(sealift::test::mentions(error, "path = \"bin/run\"\n            package = \"one\"   # or \"two\""));
}

TEST_CASE("a wheel that puts a file into another one's package is a conflict, a shared namespace is none") {
  sealift::bundle::PackageOwners owners;
  owners.claim("torch/__init__.py", "torch.whl");
  owners.claim("torch/nn/__init__.py", "torch.whl");
  owners.claim("nvidia/cublas/lib.so", "cublas.whl");
  owners.claim("nvidia/nccl/lib.so", "nccl.whl");
  owners.claim("six.py", "six.whl");
  owners.check();
  owners.claim("torch/evil.py", "evil.whl");
  CHECK_REFUSED(owners.check(), Conflict, "torch/evil.py");
  CHECK_REFUSED(owners.check(), Conflict, "torch.whl");
  CHECK_REFUSED(owners.check(), Conflict, "evil.whl");
  owners.claim("six.so", "six.whl");
  owners.claim("six.py", "late.whl");
  CHECK_REFUSED(owners.check(), Conflict, "likewise torch/evil.py of evil.whl beside torch.whl");  // all in one message
}

TEST_CASE("two native modules are twins by the name that Python imports, whatever stands before it in others") {
  sealift::bundle::PackageOwners owners;  // what vLLM and SGLang bring
  const std::string folder = "nvidia_cutlass_dsl/dsl_packages/_mlir_libs/";
  owners.claim(folder + "_ir.cu12.cpython-311-x86_64-linux-gnu.so", "libs_cu12.whl");
  owners.claim(folder + "_ir.cu13.cpython-311-x86_64-linux-gnu.so", "libs_cu13.whl");
  owners.claim(folder + "_ir.cu13.so", "libs_cu14.whl");
  owners.check();
  owners.claim(folder + "_ir.abi3.so", "one.whl");
  owners.check();  // the others are no _ir
  SUBCASE("of one Python") {
    owners.claim(folder + "_ir.cpython-311-x86_64-linux-gnu.so", "two.whl");
  }
  SUBCASE("of all") {
    owners.claim(folder + "_ir.so", "two.whl");
  }
  SUBCASE("of another one") {
    owners.claim(folder + "_ir.pypy311-pp73-x86_64-linux-gnu.so", "two.whl");
  }
  CHECK_REFUSED(owners.check(), Conflict, "the same name");
}
