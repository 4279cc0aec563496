// SPDX-License-Identifier: Apache-2.0
// The bodies of tensor_file.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/safetensors.hpp>
#include <sealift/train/checkpoint/tensor_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sealift::train {

SEALIFT_BODY std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kFloat8_e4m3fn:
      return "F8_E4M3";
    case at::kFloat8_e5m2:
      return "F8_E5M2";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    case at::kBool:
      return "BOOL";
    default:
      TORCH_CHECK(false, "a tensor of ", type, " cannot be written to safetensors; convert it to F32 or BF16");
  }
}

SEALIFT_BODY at::ScalarType scalar_type(const std::string& dtype, const std::string& where) {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2,
                          at::kLong, at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
    if (dtype_name(type) == dtype) return type;
  }
  TORCH_CHECK(false, where, ": dtype ", dtype, " cannot be loaded; convert the file to F32, F16 or BF16");
}

namespace detail {

SEALIFT_BODY Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

SEALIFT_BODY Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

template <class... Parts>
[[noreturn]] void fail_errno(const std::filesystem::path& path, const Parts&... what) {
  const int error = errno;
  TORCH_CHECK(false, path.string(), ": ", what..., ": ", std::strerror(error),
              error == ENOSPC || error == EDQUOT ? "; make room, or write to another disk" : "");
}

}  // namespace detail

SEALIFT_BODY void sync_folder(const std::filesystem::path& folder) {
  const detail::Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0 || ::fsync(descriptor.get()) != 0) detail::fail_errno(folder, "the folder cannot be synced");
}

SEALIFT_BODY OutputFile::OutputFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp") {
  file_ = detail::Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (file_.get() < 0) detail::fail_errno(temporary_, "the file cannot be made");
}

SEALIFT_BODY OutputFile::~OutputFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

SEALIFT_BODY void OutputFile::write(const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    // Small enough to be hashed from the cache.
    const auto part = std::min<std::size_t>(bytes, std::size_t{1} << 20);
    digest_.update(next, part);
    for (std::size_t done = 0; done < part;) {
      const auto count = ::write(file_.get(), next + done, part - done);
      if (count < 0 && errno != EINTR) detail::fail_errno(temporary_, "cannot write at byte ", written_.bytes);
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    next += part;
    bytes -= part;
    written_.bytes += part;
  }
}

SEALIFT_BODY FileDigest OutputFile::commit() {
  if (::fsync(file_.get()) != 0) detail::fail_errno(temporary_, "the file cannot be synced");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) detail::fail_errno(path_, "the file cannot be named");
  committed_ = true;
  const auto folder = path_.parent_path();
  sync_folder(folder.empty() ? "." : folder);
  written_.sha256 = digest_.hex();
  return written_;
}

SEALIFT_BODY InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = detail::Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) detail::fail_errno(path_, "the file cannot be opened");
  TORCH_CHECK(S_ISREG(status.st_mode), path_.string(), " is no regular file");
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

SEALIFT_BODY void InputFile::read(std::uint64_t offset, void* data, std::size_t bytes) const {
  for (auto* next = static_cast<char*>(data); bytes > 0;) {
    const auto count = ::pread(file_.get(), next, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) detail::fail_errno(path_, "cannot read at byte ", offset);
    TORCH_CHECK(count > 0, path_.string(), " ends at byte ", offset, " of ", bytes_, "; copy it again");
    next += count;
    bytes -= static_cast<std::size_t>(count);
    offset += static_cast<std::uint64_t>(count);
  }
}

SEALIFT_BODY std::string read_text(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const InputFile file(path);
  TORCH_CHECK(file.bytes() <= max_bytes, path.string(), " has ", file.bytes(), " bytes; expected at most ", max_bytes);
  std::string text(file.bytes(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

SEALIFT_BODY safetensors::Header read_header(const InputFile& file) {
  return safetensors::read_header(
      file.bytes(), [&](std::uint64_t offset, char* data, std::size_t bytes) { file.read(offset, data, bytes); },
      file.path().string());
}

SEALIFT_BODY safetensors::Tensor describe(const std::string& name, at::ScalarType type, at::IntArrayRef sizes) {
  safetensors::Tensor tensor{.name = name, .dtype = dtype_name(type)};
  for (const auto size : sizes) tensor.shape.push_back(static_cast<std::uint64_t>(size));
  return tensor;
}

SEALIFT_BODY FileDigest write_tensor_file(const std::filesystem::path& path, const TensorList& tensors,
                                          std::map<std::string, std::string> metadata) {
  safetensors::Header header{.metadata = std::move(metadata)};
  std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  for (const auto& [name, tensor] : tensors) {
    header.tensors.push_back(describe(name, tensor.scalar_type(), tensor.sizes()));
  }
  const auto text = safetensors::write_header(header);
  OutputFile file(path);
  file.write(text.data(), text.size());
  for (const auto& entry : header.tensors) {
    const auto data = by_name.at(entry.name).to(at::kCPU).contiguous();
    file.write(data.const_data_ptr(), data.nbytes());
  }
  return file.commit();
}

}  // namespace sealift::train
