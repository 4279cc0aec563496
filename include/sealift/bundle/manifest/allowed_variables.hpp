// SPDX-License-Identifier: Apache-2.0
// Which variables a bundle may set for every program of its environment: a list of what is allowed, since nobody can
// list all that glibc, OpenSSL, pip, proxies or a driver take orders from. The packager, the installer and
// sealift-start ask here; sealift-start is without our library, so the list is all in this header.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sealift::bundle {

// How names begin that packages for training and serving read, each family with its own prefix.
inline constexpr std::string_view kVariableFamilies[] = {"ACCELERATE_",
                                                         "ALBUMENTATIONS_",
                                                         "ARROW_",
                                                         "ASCEND_",
                                                         "BITSANDBYTES_",
                                                         "BNB_",
                                                         "CCL_",
                                                         "CLEARML_",
                                                         "COMET_",
                                                         "CUBLAS_",
                                                         "CUDA_",
                                                         "CUDNN_",
                                                         "DATASETS_",
                                                         "DECORD_",
                                                         "DEEPSPEED_",
                                                         "DIFFUSERS_",
                                                         "DS_",
                                                         "EVALUATE_",
                                                         "FLASHINFER_",
                                                         "FLASH_",
                                                         "GLOO_",
                                                         "GOMP_",
                                                         "GRADIO_",
                                                         "HCCL_",
                                                         "HF_",
                                                         "HIP_",
                                                         "HSA_",
                                                         "HUGGINGFACE_",
                                                         "IMAGEIO_",
                                                         "JAX_",
                                                         "JOBLIB_",
                                                         "KERAS_",
                                                         "KMP_",
                                                         "LIGHTGBM_",
                                                         "LITELLM_",
                                                         "LLAMAFACTORY_",
                                                         "LOKY_",
                                                         "MCCL_",
                                                         "MEGATRON_",
                                                         "MIOPEN_",
                                                         "MKL_",
                                                         "MLFLOW_",
                                                         "MODELSCOPE_",
                                                         "MUSA_",
                                                         "NCCL_",
                                                         "NEPTUNE_",
                                                         "NEURON_",
                                                         "NLTK_",
                                                         "NPY_",
                                                         "NUMBA_",
                                                         "NUMEXPR_",
                                                         "NVIDIA_",
                                                         "NVSHMEM_",
                                                         "NVTE_",
                                                         "OMPI_",
                                                         "OMP_",
                                                         "ONNX_",
                                                         "OPENBLAS_",
                                                         "OPENCV_",
                                                         "ORT_",
                                                         "OUTLINES_",
                                                         "PADDLE_",
                                                         "PANDAS_",
                                                         "PEFT_",
                                                         "POLARS_",
                                                         "PYTORCH_",
                                                         "RAYON_",
                                                         "RAY_",
                                                         "RCCL_",
                                                         "ROCM_",
                                                         "SAFETENSORS_",
                                                         "SCIPY_",
                                                         "SENTENCE_",
                                                         "SGLANG_",
                                                         "SGL_",
                                                         "SITE_",
                                                         "SKLEARN_",
                                                         "SPACY_",
                                                         "STREAMLIT_",
                                                         "SWANLAB_",
                                                         "SWIFT_",
                                                         "SYCL_",
                                                         "TENSORBOARD_",
                                                         "TF_",
                                                         "TIKTOKEN_",
                                                         "TOKENIZERS_",
                                                         "TORCHDYNAMO_",
                                                         "TORCHELASTIC_",
                                                         "TORCHINDUCTOR_",
                                                         "TORCH_",
                                                         "TRANSFORMERS_",
                                                         "TRITON_",
                                                         "TRL_",
                                                         "UCC_",
                                                         "UCX_",
                                                         "USE_",
                                                         "VLLM_",
                                                         "WANDB_",
                                                         "XFORMERS_",
                                                         "XGBOOST_",
                                                         "XLA_",
                                                         "ZIG_"};

// And single names.
inline constexpr std::string_view kVariableNames[] = {"ANONYMIZED_TELEMETRY",
                                                      "CC",
                                                      "CXX",
                                                      "DISABLE_VERSION_CHECK",
                                                      "DO_NOT_TRACK",
                                                      "FORCE_TORCHRUN",
                                                      "MALLOC_ARENA_MAX",
                                                      "MAX_PIXELS",
                                                      "MPLBACKEND",
                                                      "MPLCONFIGDIR",
                                                      "NO_ALBUMENTATIONS_UPDATE"};

// Of these families, what names a library that is loaded into every program.
inline constexpr std::string_view kVariablesThatLoad[] = {"CUDA_INJECTION32_PATH", "CUDA_INJECTION64_PATH",
                                                          "HSA_TOOLS_LIB",         "OMPI_MCA_mca_base_component_path",
                                                          "OMP_TOOL_LIBRARIES",    "UCX_MODULE_DIR"};

constexpr bool is_allowed_variable(std::string_view name) {
  const auto is_name = [&](std::string_view one) { return one == name; };
  if (std::any_of(std::begin(kVariablesThatLoad), std::end(kVariablesThatLoad), is_name)) return false;
  return std::any_of(std::begin(kVariableNames), std::end(kVariableNames), is_name) ||
         std::any_of(std::begin(kVariableFamilies), std::end(kVariableFamilies),
                     [&](std::string_view family) { return name.starts_with(family) && name != family; });
}

}  // namespace sealift::bundle
