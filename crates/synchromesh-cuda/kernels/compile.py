# Compiles the kernels to PTX with NVRTC and that PTX with ptxas for several architectures; prints what each kernel takes.
"""usage: compile.py FOLDER [--check]

Writes the PTX files of UNITS, or with --check compares them with what the sources give. Fails if a kernel spills registers
on an architecture of its unit. Needs the Python packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvcc-cu12 of one version;
no card and no driver. Started by `cargo xtask kernels`.
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]
# Translation units: the architecture that the PTX is for, and those of ARCHITECTURES that it runs on.
UNITS = {"kernels": ("compute_80", ARCHITECTURES), "cluster": ("compute_90", ARCHITECTURES[1:])}


def package(name):
    """The folder of an NVIDIA package."""
    for folder in map(pathlib.Path, sys.path):
        if (folder / "nvidia" / name).is_dir():
            return folder / "nvidia" / name
    sys.exit(f"the package nvidia/{name} is not installed")


class Nvrtc:
    """NVIDIA's run-time compiler, as a library."""

    def __init__(self):
        libraries = sorted(package("cuda_nvrtc").glob("lib/libnvrtc.so.*"))
        self.nvrtc = ctypes.CDLL(str(libraries[0]))
        self.nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        result = getattr(self.nvrtc, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {self.nvrtc.nvrtcGetErrorString(result).decode()}")

    def text(self, kind, program):
        """The log or the PTX of a program."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{kind}", program, buffer)
        return buffer.value.decode()

    def compile(self, path, options):
        program, source = ctypes.c_void_p(), path.read_text().encode()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source, path.name.encode(), 0, None, None)
        options = [option.encode() for option in options]
        try:
            self.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        except RuntimeError:
            sys.exit(self.text("ProgramLog", program))
        return self.text("PTX", program)


def without_paths(ptx):
    """PTX without what differs between machines."""
    lines = [line.rstrip() for line in ptx.splitlines() if not line.startswith("//")]
    return "\n".join(lines).strip() + "\n"


def resources(ptx, architecture):
    """Registers, bytes of spills and of a stack of each kernel, by ptxas."""
    ptxas = package("cuda_nvcc") / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernels.ptx"
        path.write_text(ptx)
        command = [ptxas, "-v", f"-arch={architecture}", path, "-o", path.with_suffix(".cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = {}
    name = None
    for line in done.stderr.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)'", line)
        name = entry.group(1) if entry else name
        spill = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if spill:
            found[name] = [None, sum(map(int, spill.groups()))]
        used = re.search(r"Used (\d+) registers", line)
        if used:
            found[name][0] = int(used.group(1))
    return found


def compiled(nvrtc, unit):
    """The PTX of a unit, and what its kernels take on each architecture."""
    virtual, architectures = UNITS[unit]
    options = [f"--gpu-architecture={virtual}", "--std=c++17", f"-I{KERNELS}", "--fmad=true"]
    ptx = without_paths(nvrtc.compile(KERNELS / f"{unit}.cu", options))
    return ptx, {architecture: resources(ptx, architecture) for architecture in architectures}


def main():
    folder, check = pathlib.Path(sys.argv[1]), "--check" in sys.argv[2:]
    nvrtc = Nvrtc()
    units = {unit: compiled(nvrtc, unit) for unit in UNITS}
    print("kernel".ljust(32) + "".join(f"{a:>8}" for a in ARCHITECTURES) + "   (registers of a thread)")
    spilled, count = [], 0
    for _, tables in units.values():
        for name in next(iter(tables.values())):
            count += 1
            used = [tables[a][name][0] if a in tables else "-" for a in ARCHITECTURES]
            print(name.ljust(32) + "".join(f"{registers:>8}" for registers in used))
            spilled += [(name, a) for a in tables if tables[a][name][1] != 0]
    if spilled:
        sys.exit(f"kernels that spill registers or use a stack: {spilled}")
    size = sum(len(ptx) for ptx, _ in units.values())
    print(f"{count} kernels on {len(ARCHITECTURES)} architectures, no spills; {size} bytes of PTX")
    folder.mkdir(exist_ok=True)
    for unit, (ptx, _) in units.items():
        path = folder / f"{unit}.ptx"
        if not check:
            path.write_text(ptx)
            print(f"written to {path}")
        elif not path.is_file() or path.read_text() != ptx:
            sys.exit(f"{path} is not what the sources give: run `cargo xtask kernels`")
    if check:
        print("the PTX is unchanged")


main()
