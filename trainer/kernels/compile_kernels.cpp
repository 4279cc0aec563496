// SPDX-License-Identifier: Apache-2.0
// compile_kernels NVRTC DEVICE.CU INCLUDE_ROOT OUT: compiles the kernels for the cards that are named here, with
// NVIDIA's compiler as a library, and writes OUT/<card>.cubin, one PTX, OUT/ptxas.log and OUT/kernel_images.cpp, which
// has them in the program. Runs when the project is built. NVRTC comes with LibTorch's CUDA and needs neither a card
// nor a driver.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// Cards that have code of their own; what comes after them gets the text of the oldest.
constexpr int kCards[] = {80, 90, 100, 120};
constexpr int kText = 80;

using Program = void*;

struct Nvrtc {
  int (*version)(int*, int*);
  int (*count)(int*);
  int (*list)(int*);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
  int (*compile)(Program, int options, const char* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*destroy)(Program*);

  explicit Nvrtc(const char* library) {
    opened_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!opened_) throw std::runtime_error(dlerror());
    find(version, "nvrtcVersion");
    find(count, "nvrtcGetNumSupportedArchs");
    find(list, "nvrtcGetSupportedArchs");
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(cubin_size, "nvrtcGetCUBINSize");
    find(cubin, "nvrtcGetCUBIN");
    find(ptx_size, "nvrtcGetPTXSize");
    find(ptx, "nvrtcGetPTX");
    find(destroy, "nvrtcDestroyProgram");
  }

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(opened_, name));
    if (!function) throw std::runtime_error(std::string("NVRTC has no ") + name);
  }

  void* opened_ = nullptr;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
}

/// Its size, then its bytes.
template <class Size, class Get>
std::string taken(Program program, Size size, Get get) {
  std::size_t bytes = 0;
  std::string text;
  if (size(program, &bytes) == 0) text.resize(bytes);
  if (get(program, text.data()) != 0) throw std::runtime_error("NVRTC does not give its result");
  return text;
}

struct Result {
  std::string code, log;
};

Result compile(const Nvrtc& nvrtc, const std::string& source, const std::string& root, int card, bool text) {
  // No multiplication is joined with an addition, so that host and device round alike.
  const std::vector<std::string> options{(text ? "-arch=compute_" : "-arch=sm_") + std::to_string(card),
                                         "-std=c++20",
                                         "-default-device",
                                         "-fmad=false",
                                         "-I" + root,
                                         text ? "-w" : "--ptxas-options=-v"};
  std::vector<const char*> words;
  for (const auto& each : options) words.push_back(each.c_str());
  Program program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "device.cu", 0, nullptr, nullptr) != 0) {
    throw std::runtime_error("NVRTC does not take the source");
  }
  const int error = nvrtc.compile(program, static_cast<int>(words.size()), words.data());
  auto log = taken(program, nvrtc.log_size, nvrtc.log);
  log.resize(std::min(log.size(), log.find('\0')));
  if (error != 0) throw std::runtime_error("for " + options.front() + ":\n" + log);
  Result result{text ? taken(program, nvrtc.ptx_size, nvrtc.ptx) : taken(program, nvrtc.cubin_size, nvrtc.cubin), log};
  nvrtc.destroy(&program);
  return result;
}

/// Of what is embedded, in its name: a compiler cache sees the source alone, and would give an older object for it.
std::string digest_of(const std::string& content) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const unsigned char byte : content) hash = (hash ^ byte) * 1099511628211U;
  std::ostringstream text;
  text << std::hex << hash;
  return text.str();
}

/// Bytes of a file as a symbol, ended by a 0, as NVRTC's texts are already.
std::string symbol_of(const std::string& name, const std::string& path) {
  return "asm(\".pushsection .rodata\\n.balign 64\\n" + name + ": .incbin \\\"" + path + "\\\"\\n" + name +
         "_end: .byte 0\\n.popsection\");\nextern \"C\" const char " + name + "[], " + name + "_end[];\n";
}

void make(const Nvrtc& nvrtc, const std::string& source, const std::string& root, const std::string& out) {
  int count = 0, major = 0, minor = 0;
  nvrtc.version(&major, &minor);
  nvrtc.count(&count);
  std::vector<int> known(static_cast<std::size_t>(count));
  nvrtc.list(known.data());
  std::ostringstream log, symbols, rows;
  log << "NVRTC " << major << "." << minor << "\n";
  const auto add = [&](int card, bool text) {
    if (std::find(known.begin(), known.end(), card) == known.end()) {
      log << "left out: this NVRTC does not know sm_" << card << "\n";
      return;
    }
    const auto result = compile(nvrtc, source, root, card, text);
    const auto name = (text ? "sealift_ptx_" : "sealift_cubin_") + std::to_string(card) + "_" + digest_of(result.code);
    const auto path = out + "/" + (text ? "compute_" : "sm_") + std::to_string(card) + (text ? ".ptx" : ".cubin");
    write(path, result.code);
    log << result.log;
    symbols << symbol_of(name, path);
    rows << "      {" << card << ", " << (text ? "true" : "false") << ", " << name << ", static_cast<std::size_t>("
         << name << "_end - " << name << ")},\n";
  };
  for (const int card : kCards) add(card, /*text=*/false);
  add(kText, /*text=*/true);
  write(out + "/ptxas.log", log.str());
  write(out + "/kernel_images.cpp",
        "// Written by compile_kernels.\n#include \"trainer/kernels/images.hpp\"\n\n" + symbols.str() +
            "\nnamespace sealift::trainer::kernels {\n\n" +
            "const std::vector<Image>& images() {\n  static const std::vector<Image> all{\n" + rows.str() +
            "  };\n  return all;\n}\n\n}  // namespace sealift::trainer::kernels\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 5) throw std::runtime_error("usage: compile_kernels NVRTC DEVICE.CU INCLUDE_ROOT OUT");
    make(Nvrtc(argv[1]), read(argv[2]), argv[3], argv[4]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "compile_kernels: " << error.what() << "\n";
    return 1;
  }
}
