# Finds LibTorch in any Python environment that has torch in it: -DSEALIFT_TORCH=<site-packages>/torch.
# Upstream's own package wants a CUDA toolkit and a newer CMake; the libraries themselves do not.
#   LibTorch::LibTorch   headers (as system headers), libtorch_cpu and libc10, and the macros that switch c10d on
#   LibTorch::CUDA       libtorch_cuda and what of CUDA a program calls itself, when the environment has them, and the
#                        macro that switches NCCL on; no toolkit is needed
#   LibTorch_NVRTC_LIBRARY   NVIDIA's compiler as a library, when the environment has it
#   LibTorch_VERSION     as torch/version.py says it
#   LibTorch_PYTHON      the version of the environment, like 3.11
# LibTorch::LibTorch leaves libtorch_cuda out on purpose: linking it would load CUDA's libraries into every CPU process.
include(FindPackageHandleStandardArgs)

get_filename_component(LibTorch_SITE "${SEALIFT_TORCH}" DIRECTORY)
set(LibTorch_INCLUDE_DIRS)
foreach(folder ${SEALIFT_TORCH}/include ${SEALIFT_TORCH}/include/torch/csrc/api/include
        ${LibTorch_SITE}/nvidia/cu13/include ${LibTorch_SITE}/nvidia/nccl/include)
  if(IS_DIRECTORY ${folder})
    list(APPEND LibTorch_INCLUDE_DIRS ${folder})
  endif()
endforeach()

find_file(LibTorch_HEADER torch/torch.h PATHS ${SEALIFT_TORCH}/include/torch/csrc/api/include NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${SEALIFT_TORCH}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS ${SEALIFT_TORCH}/lib NO_DEFAULT_PATH)
# The wheel carries Gloo's code but not its headers; a distribution's libgloo-dev has them.
find_path(LibTorch_GLOO_INCLUDE_DIR gloo/context.h)
mark_as_advanced(LibTorch_HEADER LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_GLOO_INCLUDE_DIR)

if(EXISTS ${SEALIFT_TORCH}/version.py)
  file(STRINGS ${SEALIFT_TORCH}/version.py LibTorch_VERSION REGEX "^__version__ = ")
  string(REGEX REPLACE ".*'([0-9.]+).*" "\\1" LibTorch_VERSION "${LibTorch_VERSION}")
endif()
if(LibTorch_SITE MATCHES "/python(3\\.[0-9]+)/")
  set(LibTorch_PYTHON ${CMAKE_MATCH_1})
endif()

string(CONCAT LibTorch_REMEDY "SEALIFT_TORCH is '${SEALIFT_TORCH}'. It must be the torch folder of a Python environment, "
  "<prefix>/lib/python3.11/site-packages/torch, and Gloo's headers (libgloo-dev) must be installed.")
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_HEADER LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_GLOO_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${LibTorch_REMEDY}")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIRS} ${LibTorch_GLOO_INCLUDE_DIR})
  target_compile_definitions(LibTorch::LibTorch INTERFACE
    USE_DISTRIBUTED USE_C10D_GLOO _GLIBCXX_USE_CXX11_ABI=1)
  target_link_libraries(LibTorch::LibTorch INTERFACE ${LibTorch_CPU_LIBRARY} ${LibTorch_C10_LIBRARY})
  # What libtorch_cpu itself needs (CUDA's runtime, libgomp) it finds by its own DT_RPATH when the program starts.
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined)
endif()

find_library(LibTorch_CUDA_LIBRARY torch_cuda PATHS ${SEALIFT_TORCH}/lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda PATHS ${SEALIFT_TORCH}/lib NO_DEFAULT_PATH)
file(GLOB LibTorch_CUDART_LIBRARY ${LibTorch_SITE}/nvidia/cu*/lib/libcudart.so.[0-9]*)
file(GLOB LibTorch_NVRTC_LIBRARY ${LibTorch_SITE}/nvidia/*/lib/libnvrtc.so.[0-9]*)
if(LibTorch_NVRTC_LIBRARY)
  list(GET LibTorch_NVRTC_LIBRARY 0 LibTorch_NVRTC_LIBRARY)
endif()
find_file(LibTorch_NCCL_HEADER nccl.h PATHS ${LibTorch_SITE}/nvidia/nccl/include NO_DEFAULT_PATH)
# The runtime's headers include these, which come in wheels of their own or with CUDA's toolkit.
set(cuda_beside HINTS ${LibTorch_SITE}/nvidia/cu13/include PATHS /usr/local/cuda/include)
find_path(LibTorch_CRT_INCLUDE_DIR crt/host_config.h ${cuda_beside})
find_path(LibTorch_CCCL_INCLUDE_DIR nv/target ${cuda_beside})
mark_as_advanced(LibTorch_CUDA_LIBRARY LibTorch_C10_CUDA_LIBRARY LibTorch_NCCL_HEADER
  LibTorch_CRT_INCLUDE_DIR LibTorch_CCCL_INCLUDE_DIR)
if(LibTorch_FOUND AND LibTorch_CUDA_LIBRARY AND NOT (LibTorch_CRT_INCLUDE_DIR AND LibTorch_CCCL_INCLUDE_DIR))
  message(STATUS "LibTorch::CUDA is left out: CUDA's headers are not all here; install the wheels nvidia-cuda-crt and "
    "nvidia-cuda-cccl beside torch")
endif()
if(LibTorch_FOUND AND LibTorch_CUDA_LIBRARY AND LibTorch_C10_CUDA_LIBRARY AND LibTorch_CUDART_LIBRARY
   AND LibTorch_NCCL_HEADER AND LibTorch_CRT_INCLUDE_DIR AND LibTorch_CCCL_INCLUDE_DIR AND NOT TARGET LibTorch::CUDA)
  add_library(LibTorch::CUDA INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(LibTorch::CUDA INTERFACE USE_CUDA USE_C10D_NCCL)
  target_include_directories(LibTorch::CUDA SYSTEM INTERFACE ${LibTorch_CRT_INCLUDE_DIR} ${LibTorch_CCCL_INCLUDE_DIR})
  # A program may call nothing of libtorch_cuda and still need it: loading it is what makes the device known.
  target_link_options(LibTorch::CUDA INTERFACE -Wl,--no-as-needed)
  target_link_libraries(LibTorch::CUDA INTERFACE LibTorch::LibTorch
    ${LibTorch_CUDA_LIBRARY} ${LibTorch_C10_CUDA_LIBRARY} ${LibTorch_CUDART_LIBRARY})
endif()
