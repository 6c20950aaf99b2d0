# SPDX-License-Identifier: Apache-2.0
"""Spack's recipe of Baton. It takes the source archive that `./run dist` wrote from the folder that spack is called in."""

import os

from spack.package import *  # noqa: F403 pylint: disable=wildcard-import,unused-wildcard-import


class Baton(CMakePackage, CudaPackage):  # noqa: F405
    """Measures how a long sequence is split over devices: exchanges and sequence-parallel methods, verified."""

    manual_download = True

    license("Apache-2.0")  # noqa: F405

    version("0.1.0")  # noqa: F405

    variant("cuda", default=False, description="Executors nccl and peer, and the kernels of GPUs")  # noqa: F405

    depends_on("cxx", type="build")  # noqa: F405
    depends_on("cmake@3.25:", type="build")  # noqa: F405
    depends_on("mpi")  # noqa: F405
    depends_on("benchmark")  # noqa: F405
    depends_on("cli11")  # noqa: F405
    depends_on("eigen@3.4:")  # noqa: F405
    depends_on("fmt")  # noqa: F405
    depends_on("googletest", type="build")  # noqa: F405
    depends_on("hwloc@2:")  # noqa: F405
    depends_on("nlohmann-json")  # noqa: F405
    depends_on("openblas")  # noqa: F405
    depends_on("protobuf@3:3.21")  # noqa: F405
    depends_on("python@3.9:", type=("build", "run"))  # noqa: F405
    depends_on("py-jinja2", type="run")  # noqa: F405
    depends_on("py-matplotlib", type="run")  # noqa: F405
    depends_on("py-scipy", type="run")  # noqa: F405
    depends_on("cuda@12:", when="+cuda")  # noqa: F405
    depends_on("nccl@2.28:", when="+cuda")  # noqa: F405
    conflicts("cuda_arch=none", when="+cuda", msg="name the architecture, such as cuda_arch=90")  # noqa: F405

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/baton_{version}.orig.tar.gz"

    def cmake_args(self):
        args = [self.define_from_variant("BATON_CUDA", "cuda"), self.define("BATON_NATIVE", False)]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
