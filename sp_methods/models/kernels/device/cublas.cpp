// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt, whose library is opened when the program runs: no build needs it, only the
// header.
//
//   plan:     describe the product, ask the library's heuristic for its first choice; keep both
//   enqueue:  cublasLtMatmul, f32 accumulation, in the workspace that all calls share
//
// Matrices are row-major here and column-major there, so the library computes out^T = b^T a^T.
// Source: NVIDIA, cuBLAS library, "Using the cuBLASLt API".
#include <cublasLt.h>
#include <dlfcn.h>

#include <map>

#include "collectives/executors/cuda/library_search.hpp"
#include "collectives/schedule/errors.hpp"
#include "sp_methods/kernels/device/workspace.cuh"
#include "sp_methods/models/kernels/device/product.cuh"

namespace baton {
namespace {

constexpr const char* path_variable = "BATON_CUBLASLT_LIBRARY";

/// The functions of the library that are used, and a handle.
struct Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmulDescCreate) new_description;
  decltype(&cublasLtMatmulDescSetAttribute) describe;
  decltype(&cublasLtMatrixLayoutCreate) new_layout;
  decltype(&cublasLtMatmulPreferenceCreate) new_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) prefer;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmul) multiply;
  cublasLtHandle_t handle = nullptr;
};

/// Throws SystemError unless a call succeeded.
void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw SystemError(std::string("cuBLASLt: ") + call + " failed with status " + std::to_string(status));
}

void* find_library() {
  const std::string file = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  if (const char* path = std::getenv(path_variable)) return opened({path});
  if (void* library = opened({file})) return library;
  return opened(in_pythons("nvidia/*/lib/" + file));
}

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw SystemError(std::string("cuBLASLt has no ") + name);
}

Functions open_functions(void* library) {
  Functions all{};
  look_up(library, "cublasLtCreate", all.create);
  look_up(library, "cublasLtGetVersion", all.version);
  look_up(library, "cublasLtMatmulDescCreate", all.new_description);
  look_up(library, "cublasLtMatmulDescSetAttribute", all.describe);
  look_up(library, "cublasLtMatrixLayoutCreate", all.new_layout);
  look_up(library, "cublasLtMatmulPreferenceCreate", all.new_preference);
  look_up(library, "cublasLtMatmulPreferenceSetAttribute", all.prefer);
  look_up(library, "cublasLtMatmulPreferenceDestroy", all.drop_preference);
  look_up(library, "cublasLtMatmulAlgoGetHeuristic", all.choose);
  look_up(library, "cublasLtMatmul", all.multiply);
  check(all.create(&all.handle), "cublasLtCreate");
  return all;
}

/// The opened library, or a null pointer if there is none. It stays open.
const Functions* functions() {
  static const Functions* const one = [] {
    void* library = find_library();
    return library == nullptr ? nullptr : new Functions(open_functions(library));
  }();
  return one;
}

/// The library's descriptors and choice of kernel for products of one shape. They stay as long as
/// the process.
struct Plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t left = nullptr, right = nullptr, out = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};
};

cudaDataType_t type_of(Dtype dtype) { return dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// A row-major matrix [rows, columns] as the library sees it.
cublasLtMatrixLayout_t layout_of(const Functions& library, Dtype dtype, std::int64_t rows,
                                 std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(library.new_layout(&layout, type_of(dtype), static_cast<std::uint64_t>(columns),
                           static_cast<std::uint64_t>(rows), columns),
        "cublasLtMatrixLayoutCreate");
  return layout;
}

/// The heuristic's first choice for a described product, within the workspace.
void choose(const Functions& library, Plan& plan) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(library.new_preference(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check(library.prefer(preference, which, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, model_workspace_bytes);
  // Where the depth is split, parts are added up in f32 too.
  constexpr std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction);
  // Weights lie side by side in a buffer, so 16 bytes are all that is certain.
  constexpr std::uint32_t alignment = 16;
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(operand, alignment);
  int found = 0;
  const cublasStatus_t status = library.choose(library.handle, plan.description, plan.left, plan.right,
                                               plan.out, plan.out, preference, 1, &plan.choice, &found);
  library.drop_preference(preference);
  check(found == 0 && status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status,
        "cublasLtMatmulAlgoGetHeuristic");
}

Plan planned(const Functions& library, const Product& p) {
  Plan plan;
  check(library.new_description(&plan.description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const auto transpose = [&](cublasLtMatmulDescAttributes_t side, bool is) {
    const cublasOperation_t operation = is ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(library.describe(plan.description, side, &operation, sizeof operation),
          "cublasLtMatmulDescSetAttribute");
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, p.transposes_b);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, p.transposes_a);
  const auto layout = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    return layout_of(library, p.dtype, transposed ? columns : rows, transposed ? rows : columns);
  };
  plan.left = layout(p.depth, p.columns, p.transposes_b);
  plan.right = layout(p.rows, p.depth, p.transposes_a);
  plan.out = layout_of(library, p.out, p.rows, p.columns);
  choose(library, plan);
  return plan;
}

std::map<Product, Plan>& plans() {
  static auto& all = *new std::map<Product, Plan>;
  return all;
}

Refusal plan_product(const Product& p) {
  if (plans().contains(p)) return {};
  try {
    const Functions* library = functions();
    if (library == nullptr)
      return std::string("cuBLASLt: libcublasLt.so.") + std::to_string(CUBLAS_VER_MAJOR) +
             " was not found; " + path_variable + " may name it";
    plans().emplace(p, planned(*library, p));
    return {};
  } catch (const SystemError& error) {
    return error.what();
  }
}

void enqueue_product(cudaStream_t stream, const ProductOperands& x, const Product& p) {
  const Functions& library = *functions();
  const Plan& plan = plans().at(p);
  const float one = 1, addend = x.c == nullptr ? 0.0F : 1.0F;
  check(library.multiply(library.handle, plan.description, &one, x.b, plan.left, x.a, plan.right, &addend,
                         x.c == nullptr ? x.out : x.c, plan.out, x.out, plan.out, &plan.choice.algo,
                         Workspace::shared().get(), model_workspace_bytes, stream),
        "cublasLtMatmul");
}

std::string library_version() {
  const Functions* library = functions();
  if (library == nullptr) return {};
  const std::size_t version = library->version();
  return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

const bool is_set = [] {
  product_library() = {plan_product, enqueue_product, library_version};
  return true;
}();

}  // namespace
}  // namespace baton
