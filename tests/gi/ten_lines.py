# ten_lines.py: what is the least that runs a kernel from Python? The argument is the kernel's source.
# SPDX-License-Identifier: LGPL-2.1-or-later
import gi, struct, sys; gi.require_version("Pto", "1"); from gi.repository import Pto  # noqa: E401,E402,E702
kernel = Pto.Kernel.new(Pto.CoreType.AIV, sys.argv[1], None)
chip = Pto.Worker.new_chip("a2a3sim"); chip.start(None); out = Pto.Buffer.new(16)  # noqa: E702
def graph(orch, *rest):  # noqa: E302
    args, tensor = Pto.TaskArgs.new(), Pto.Tensor.new_for_buffer(out, 0, Pto.Dtype.FLOAT32, [4])
    args.add_tensor(tensor, Pto.Direction.OUTPUT_EXISTING); args.add_scalar_float(42.5)  # noqa: E702
    return orch.submit(kernel, args)
chip.run(graph, None, None, None, None)  # noqa: E305
values = struct.unpack("4f", out.ref_bytes().get_data()); print(*values)  # noqa: E702
assert values == (42.5,) * 4
