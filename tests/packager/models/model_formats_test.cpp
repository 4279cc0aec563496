// SPDX-License-Identifier: Apache-2.0
// Names and first bytes of model files.
#include "packager/models/model_formats.hpp"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.hpp"

using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;
using Paths = std::vector<std::string>;

TEST_CASE("patterns are read as the hub's clients read them") {
  CHECK(matches_any("model.safetensors", {"*.safetensors"}));
  CHECK(matches_any("unet/model.safetensors", {"*.safetensors"}));  // '*' crosses '/'
  CHECK(matches_any("onnx/deep/model.onnx", {"x", "onnx/"}));
  CHECK_FALSE(matches_any("model.safetensors", {"model", "*.bin"}));
  CHECK_FALSE(matches_any("model.safetensors", {}));
}

TEST_CASE("what clients leave in a folder is no part of a model") {
  CHECK(is_bookkeeping(".git"));
  CHECK(is_bookkeeping("sub/.cache/huggingface/x.metadata"));
  CHECK(is_bookkeeping(".msc"));
  CHECK(is_bookkeeping("sub/._model.safetensors"));
  CHECK_FALSE(is_bookkeeping("_model.safetensors"));
  CHECK_FALSE(is_bookkeeping("chat.git"));
  CHECK_FALSE(is_bookkeeping(".hidden/config.json"));
}

TEST_CASE("a shard's name says which part it is of how many") {
  const auto shard = shard_name("model-00002-of-00005.safetensors");
  REQUIRE(shard);
  CHECK(shard->stem == "model");
  CHECK(shard->number == 2);
  CHECK(shard->count == 5);
  CHECK(shard->suffix == ".safetensors");
  CHECK(shard_name("a-b-1-of-1.bin")->stem == "a-b");
  for (const char* name :
       {"model.safetensors", "-of-", "model-of-3.safetensors", "model-4-of-3.safetensors", "model-0-of-3.safetensors",
        "model-x-of-3.bin", "model-1-of-.bin", "model-1-of-99999999999.bin", "1-of-2.bin"})
    CHECK_MESSAGE(!shard_name(name), name);
}

TEST_CASE("the same weights in other formats are found, and only where safetensors files are whole") {
  CHECK(duplicate_formats({"config.json", "flax_model.msgpack", "model.safetensors", "onnx/model.onnx",
                           "original/consolidated.00.pth", "pytorch_model.bin", "tf_model.h5"}) ==
        Paths{"flax_model.msgpack", "onnx/model.onnx", "original/consolidated.00.pth", "pytorch_model.bin",
              "tf_model.h5"});
  const Paths half = {"model-00001-of-00002.safetensors", "pytorch_model.bin"};
  CHECK(duplicate_formats(half).empty());
  const Paths whole = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                       "pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json"};
  CHECK(duplicate_formats(whole) == Paths{"pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json"});
  // Each folder for itself, and a classifier's head is nobody's copy.
  CHECK(duplicate_formats({"model.safetensors", "2_Dense/pytorch_model.bin", "unet/diffusion_pytorch_model.bin",
                           "unet/diffusion_pytorch_model.safetensors", "head.bin"}) ==
        Paths{"unet/diffusion_pytorch_model.bin"});
  CHECK(duplicate_formats({"pytorch_model.bin", "onnx/model.onnx"}).empty());
}

TEST_CASE("pickles are known by their names") {
  for (const char* path : {"a.pt", "sub/a.pth", "a.ckpt", "a.pkl", "a.pickle", "a.joblib", "pytorch_model.bin",
                           "pytorch_model-00001-of-00002.bin", "training_args.bin", "sub/optimizer.bin"})
    CHECK_MESSAGE(!pickle_by_name(path).empty(), path);
  for (const char* path : {"model.safetensors", "model.bin", "a.npy", "pt", "a.gguf", "openvino_model.bin"})
    CHECK_MESSAGE(pickle_by_name(path).empty(), path);
}

TEST_CASE("pickles are known by their first bytes, whatever they are called") {
  const TempDir dir;
  const auto reason = [&](const std::string& name, const std::string& bytes) {
    write_file(dir / name, bytes);
    return pickle_by_content(name, dir / name);
  };
  CHECK(reason("model.bin", "\x80\x04\x95 more") == "it begins like a pickle");
  CHECK(reason("old.bin", "\x80\x02\x8a\nl\xfc") == "it begins like a pickle");  // older torch.save
  CHECK(reason("weights", std::string("PK\x03\x04") + std::string(26, '\0') + "archive/data.pkl").find("zip") !=
        std::string::npos);
  const std::string late = std::string("PK\x03\x04") + std::string(3'000'000, 'x') + "archive/data.pkl tail";
  CHECK(reason("late", late).find("zip") != std::string::npos);
  const std::string numpy("\x93NUMPY\x01\x00v\x00", 10);
  CHECK(reason("a.npy", numpy + "{'descr': '|O', 'shape': (1,)}\n").find("objects") != std::string::npos);
  CHECK(reason("b.npy", numpy + "{'descr': [('x', 'O')], 'shape': (1,)}\n").find("objects") != std::string::npos);

  CHECK(reason("a.npy", numpy + "{'descr': '<f4', 'shape': (1,)}\n|O").empty());
  CHECK(reason("a.zip", "PK\x03\x04 plain").empty());
  CHECK(reason("chance.bin", std::string("\x80\x02\x00\x00", 4)).empty());
  CHECK(reason("model.safetensors", "\x80\x02}").empty());  // a length
  CHECK(reason("empty", "").empty());
}
