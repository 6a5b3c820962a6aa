/* vector.vala: how does Vala run the five tasks of f = (a + b + 1)(a + b + 2) + (a + b)?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * No dependency is written down: the runtime finds them from what each task reads and writes. Build and run:
 *
 *   valac --pkg pto-1 vector.vala -o vector && ./vector DIR/vector/kernels
 */
const int ELEMENTS = 16384;
const uint64 SHAPE[1] = { ELEMENTS };

class Vector {
  Pto.Callable add;
  Pto.Callable add_scalar;
  Pto.Callable mul;

  public Vector (string directory) throws Error {
    add = kernel (directory, "add");
    add_scalar = kernel (directory, "add_scalar");
    mul = kernel (directory, "mul");
  }

  static Pto.Callable kernel (string directory, string name) throws Error {
    var kernel = (Pto.Kernel) new Pto.Kernel (Pto.CoreType.AIV, Path.build_filename (directory, name + ".c"), null);

    kernel.set_n_args (3); // a submit with another number is refused
    return kernel;
  }

  void submit_binary (Pto.Orchestrator orch, Pto.Callable kernel, Pto.Tensor x, Pto.Tensor y, Pto.Tensor result, Pto.Direction direction) throws Error {
    var args = new Pto.TaskArgs ();

    args.add_tensor (x, Pto.Direction.INPUT);
    args.add_tensor (y, Pto.Direction.INPUT);
    args.add_tensor (result, direction);
    orch.submit (kernel, args);
  }

  void submit_add_scalar (Pto.Orchestrator orch, Pto.Tensor x, double value, Pto.Tensor result) throws Error {
    var args = new Pto.TaskArgs ();

    args.add_tensor (x, Pto.Direction.INPUT);
    args.add_tensor (result, Pto.Direction.OUTPUT);
    args.add_scalar_float (value);
    orch.submit (add_scalar, args);
  }

  bool graph (Pto.Orchestrator orch, Pto.Tensor a, Pto.Tensor b, Pto.Tensor f) throws Error {
    var c = orch.make_tensor (Pto.Dtype.FLOAT32, SHAPE); // memory comes from a ring, at submit
    var d = orch.make_tensor (Pto.Dtype.FLOAT32, SHAPE);
    var e = orch.make_tensor (Pto.Dtype.FLOAT32, SHAPE);
    var g = orch.make_tensor (Pto.Dtype.FLOAT32, SHAPE);

    submit_binary (orch, add, a, b, c, Pto.Direction.OUTPUT);
    submit_add_scalar (orch, c, 1, d);
    submit_add_scalar (orch, c, 2, e);
    submit_binary (orch, mul, d, e, g, Pto.Direction.OUTPUT);
    submit_binary (orch, add, g, c, f, Pto.Direction.OUTPUT_EXISTING);
    return true;
  }

  public async bool run () throws Error {
    var chip = new Pto.Worker.chip ("a2a3sim");
    Pto.Buffer buffers[3];
    Pto.Tensor tensors[3];
    float* values[3];
    int wrong = 0;

    for (var i = 0; i < 3; i++) {
      buffers[i] = new Pto.Buffer (sizeof (float) * ELEMENTS);
      tensors[i] = new Pto.Tensor.for_buffer (buffers[i], 0, Pto.Dtype.FLOAT32, SHAPE);
      values[i] = (float*) (uintptr) buffers[i].get_address ();
    }
    for (var i = 0; i < ELEMENTS; i++) {
      values[0][i] = i % 100 / 4.0f;
      values[1][i] = 3;
    }
    yield chip.run_async ((orch, args, config) => graph (orch, tensors[0], tensors[1], tensors[2]), null, null, null);
    for (var i = 0; i < ELEMENTS; i++) {
      var sum = values[0][i] + values[1][i];

      if (values[2][i] != (sum + 1) * (sum + 2) + sum)
        wrong++;
    }
    var statistics = chip.dup_statistics ();
    print ("%d elements, %" + uint64.FORMAT + " tasks, %" + uint64.FORMAT + " edges: %s\n", ELEMENTS, statistics.get_tasks (),
           statistics.get_edges (), wrong == 0 ? "PASS" : "FAIL");
    yield chip.close_async ();
    return wrong == 0;
  }
}

int main (string[] args) {
  var loop = new MainLoop ();
  var status = 1;

  try {
    var vector = new Vector (args.length > 1 ? args[1] : "examples/vector/kernels");

    vector.run.begin ((it, result) => {
      try {
        status = vector.run.end (result) ? 0 : 1;
      } catch (Error error) {
        printerr ("vector: %s\n", error.message);
      }
      loop.quit ();
    });
    loop.run ();
  } catch (Error error) {
    printerr ("vector: %s\n", error.message);
  }
  return status;
}
