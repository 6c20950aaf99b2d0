# SPDX-License-Identifier: Apache-2.0
"""CUDA sources keep to the names of .clang-tidy."""

import unittest

from device_names import complaints
from source_tree import CUDA, PRODUCT, cpp_files, text_of


class DeviceNames(unittest.TestCase):
    longMessage = False

    def test_every_cuda_source_keeps_to_the_names(self):
        sources = [path for path in cpp_files(*PRODUCT, "tests") if path.suffix in CUDA]
        self.assertTrue(sources, "found no CUDA source")
        found = [f"{path}:{line}: {what}" for path in sources for line, what in complaints(text_of(path))]
        self.assertFalse(found, "\n" + "\n".join(found))


class TheCheckItself(unittest.TestCase):
    """A check that cannot fail proves nothing."""

    FORBIDDEN = (
        "int f(int rowCount) { return 1; }\n",
        "struct tile_loader {\n  int x = 0;\n};\n",
        "using row = int;\n",
        "template <typename element>\nint f(element x) {\n  return 1;\n}\n",
        "__device__ float Add(float a, float b) {\n  return a + b;\n}\n",
        "__global__ void add(float* a) {\n}\n",
        "__global__ void __launch_bounds__(128, 2) add(float* a) {\n}\n",
        "class A {\n public:\n  int f() const { return rows; }\n\n private:\n  int rows = 0;\n};\n",
        "class A {\n  float* sums[2];\n};\n",
    )
    ALLOWED = (
        "template <typename Element, int width>\nstruct Tile {\n  Element x[4];\n};\n",
        "__global__ void __launch_bounds__(128) add_kernel(float* a) {\n  a[threadIdx.x] += blockIdx.x;\n}\n",
        "class A : public B {\n public:\n  explicit A(int P) : rows_(P) {}\n  A(A&&) = default;\n"
        "  int rows() const { return rows_; }\n  int shown = 0;\n\n private:\n  void work();\n"
        "  int rows_ = 0, *more_;\n  std::map<int, int (*)(int)> map_;\n};\n",
        "void f() {\n  cuda(cudaStreamCreate(&stream));\n  MPI_Barrier(MPI_COMM_WORLD);\n"
        "  const int P = 0xFFu + 1'000;\n}\n",
        "struct Q {\n  bool operator==(const Q& o) const { return true; }\n  Q(int x) : y(x) {}\n"
        "  ~Q() { f(); }\n  int y;\n};\n",
        "Tile::Tile(int rows)\n    : rows_(rows) {\n}\nint Tile::rows() const {\n  return 1;\n}\n",
    )

    def test_sees_what_is_forbidden(self):
        for text in self.FORBIDDEN:
            self.assertEqual(len(complaints(text)), 1, f"{text}{complaints(text)}")

    def test_lets_pass_what_is_allowed(self):
        for text in self.ALLOWED:
            self.assertEqual(complaints(text), [], text)


if __name__ == "__main__":
    unittest.main()
