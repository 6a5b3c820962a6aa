/* test_vala.vala: does the library read well in Vala, with the bindings that come of its GIR?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * argv[1]: a kernel, fill.c. Prints TAP.
 */
const int ELEMENTS = 16;

class Test {
  Pto.Kernel fill;
  Pto.Buffer buffer;
  Pto.Tensor tensor;

  public Test (string source) throws Error {
    fill = (Pto.Kernel) new Pto.Kernel (Pto.CoreType.AIV, source, null);
    buffer = new Pto.Buffer (4 * ELEMENTS);
    uint64 shape[1] = { ELEMENTS };
    tensor = new Pto.Tensor.for_buffer (buffer, 0, Pto.Dtype.FLOAT32, shape);
  }

  Pto.Worker chip (string backend) throws Error {
    var worker = new Pto.Worker.chip ("a2a3sim");
    worker.set_parameter ("backend", backend);
    worker.start (null);
    return worker;
  }

  bool submit (Pto.Orchestrator orch, double value) throws Error {
    var args = new Pto.TaskArgs ();
    args.add_tensor (tensor, Pto.Direction.OUTPUT_EXISTING);
    args.add_scalar_float (value);
    return orch.submit (fill, args);
  }

  float first () throws Error {
    return *(float*) buffer.ref_bytes ().get_data ();
  }

  /* A graph with a scope, on every back end; what was run can be asked for. */
  public void run () throws Error {
    foreach (unowned string backend in new string[] { "par", "det", "threads" }) {
      var worker = chip (backend);
      worker.run ((orch, args, config) => {
        submit (orch, 1);
        return orch.with_scope ((inner) => submit (inner, 2.5));
      }, null, null, null);
      assert (first () == 2.5f);
      var statistics = worker.dup_statistics ();
      assert (statistics.get_tasks () == 2);
      assert (statistics.get_last_task_alive (1) == 1);
      assert (worker.dup_path () == "L2/0");
      worker.close ();
    }
  }

  /* An error of the function's own, one of the library, and one that was cancelled. */
  public void errors () throws Error {
    var worker = chip ("par");
    try {
      worker.run ((orch, args, config) => {
        throw new IOError.NO_SPACE ("my own words");
      }, null, null, null);
      assert_not_reached ();
    } catch (IOError.NO_SPACE error) {
      assert (error.message == "my own words");
    }
    try {
      worker.set_parameter ("no-such", "1");
      assert_not_reached ();
    } catch (Pto.Error.INVALID_ARGS error) {
      assert (error.message.contains ("no-such"));
    }
    var cancellable = new Cancellable ();
    cancellable.cancel ();
    try {
      worker.run ((orch, args, config) => submit (orch, 1), null, null, cancellable);
      assert_not_reached ();
    } catch (IOError.CANCELLED error) {
    }
    worker.close ();
  }

  Pto.TaskArgs fill_args (Pto.Tensor what, double value) throws Error {
    var args = new Pto.TaskArgs ();
    args.add_tensor (what, Pto.Direction.INOUT);
    args.add_scalar_float (value);
    return args;
  }

  /* Tasks of more than one kernel, on every back end; what can not be is refused, and the run goes on. */
  public void several () throws Error {
    foreach (unowned string backend in new string[] { "par", "det", "threads" }) {
      var worker = chip (backend);
      worker.run ((orch, args, config) => {
        var blocks = fill_args (tensor, 1);
        blocks.set_block_dim (100);
        orch.submit (fill, blocks);
        var pair = fill_args (tensor, 2);
        pair.set_block_dim (2);
        pair.set_sync_start (true);
        orch.submit_mixed (null, fill, fill, pair);
        Pto.Callable[] kernels = { fill, fill, fill };
        orch.submit_group (kernels, fill_args (tensor, 3));
        var cluster = orch.allocate_cluster ();
        assert (cluster >= 0 && cluster < orch.get_n_clusters ());
        var there = fill_args (tensor, 4);
        there.set_cluster (cluster);
        orch.submit (fill, there);
        try {
          var wide = fill_args (tensor, 5);
          wide.set_block_dim (10000);
          wide.set_sync_start (true);
          orch.submit (fill, wide);
          assert_not_reached ();
        } catch (Pto.Error error) {
        }
        return true;
      }, null, null, null);
      assert (first () == 4);
      assert (worker.dup_statistics ().get_tasks () == 4);
      worker.close ();
    }
  }

  /* Captured from a function and launched with other arguments, also later; and built by hand. */
  public async void graphs () throws Error {
    var worker = chip ("par");
    var given = new Pto.TaskArgs ();
    given.add_tensor (tensor, Pto.Direction.INOUT);
    var graph = worker.capture ((orch, args, config) => {
      return orch.submit (fill, fill_args (args.get_tensor (0), 6)) && orch.submit (fill, fill_args (args.get_tensor (0), 7));
    }, given, null, null);
    assert (graph.get_n_tasks () == 2);
    assert (worker.run_graph (graph, given, null, null));
    assert (first () == 7);

    var other = new Pto.Buffer (4 * ELEMENTS);
    uint64 shape[1] = { ELEMENTS };
    var elsewhere = new Pto.TaskArgs ();
    elsewhere.add_tensor (new Pto.Tensor.for_buffer (other, 0, Pto.Dtype.FLOAT32, shape), Pto.Direction.INOUT);
    assert (yield worker.run_graph_async (graph, elsewhere, null, null));
    assert (*(float*) other.ref_bytes ().get_data () == 7);

    var built = new Pto.Graph ();
    var x = built.add_argument (Pto.Dtype.FLOAT32, shape);
    var late = built.add_task (fill, fill_args (x, 8));
    var later = built.add_task (fill, fill_args (x, 9));
    built.add_successor (late, later);
    assert (worker.run_graph (built, given, null, null));
    assert (first () == 9);
    try {
      worker.run_graph (graph, null, null, null);
      assert_not_reached ();
    } catch (Pto.Error error) {
      assert (error.message.contains ("takes 1 argument, but 0 are given"));
    }
    worker.close ();
  }

  /* Functions of this program in processes, and the structure of what one throws. */
  public void levels () throws Error {
    var host = new Pto.Worker.host (3, 0, 1, "a2a3sim");
    var add = new Pto.SubFunction ("add", (args) => {
      float* value = (float*) (uintptr) args.get_tensor (0).get_address ();
      *value += (float) args.get_scalar (1);
      return true;
    });
    var handle = host.register (add, null);
    assert (handle.get_kind () == Pto.CallableKind.SUB);
    assert (host.get_children ().get_n_items () == 0);
    var before = first ();
    host.run ((orch, args, config) => {
      var task = new Pto.TaskArgs ();
      task.add_tensor (tensor, Pto.Direction.INOUT);
      task.add_scalar (3);
      return orch.submit_sub (handle, task, -1);
    }, null, null, null);
    assert (first () == before + 3);

    var fail = host.register (new Pto.SubFunction ("fail", (args) => {
      new Pto.Exception ("ValueError", "one", "here", {}).@throw ();
      throw new Error (Pto.Exception.quark (), 0, "ValueError: one");
    }), null);
    try {
      host.run ((orch, args, config) => orch.submit_sub (fail, null, -1), null, null, null);
      assert_not_reached ();
    } catch (Error error) {
      var exception = Pto.Exception.get_for_error (error);
      assert (exception.get_type_name () == "ValueError");
      assert (exception.get_message () == "one");
      assert (exception.get_trace () == "here");
    }
    host.close ();
  }

  /* What does not wait, one after the other. */
  public async void later () throws Error {
    var worker = new Pto.Worker.chip ("a2a3sim");
    assert (yield fill.build_async (null));
    yield worker.start_async (null);
    uint64 told = 0;
    worker.progress_interval = 1;
    worker.run_progress.connect ((done, submitted, failed) => {
      assert (failed == 0 && done <= submitted);
      told = done;
    });
    yield worker.run_async ((orch, args, config) => submit (orch, 7), null, null, null);
    uint64 done, submitted, failed;
    bool is_running = worker.get_progress (out done, out submitted, out failed);
    assert (told == 1 && !is_running && done + submitted + failed == 0);
    assert (first () == 7);
    yield worker.close_async ();
    assert (worker.get_state () == Pto.WorkerState.CLOSED);
  }
}

int main (string[] args) {
  print ("1..6\n");
  try {
    var test = new Test (args[1]);
    test.run ();
    print ("ok 1 run\n");
    test.errors ();
    print ("ok 2 errors\n");
    test.levels ();
    print ("ok 3 levels\n");
    test.several ();
    print ("ok 4 several\n");
    var loop = new MainLoop ();
    test.later.begin ((it, result) => {
      try {
        test.later.end (result);
        print ("ok 5 later\n");
      } catch (Error error) {
        print ("not ok 5 later: %s\n", error.message);
      }
      loop.quit ();
    });
    loop.run ();
    test.graphs.begin ((it, result) => {
      try {
        test.graphs.end (result);
        print ("ok 6 graphs\n");
      } catch (Error error) {
        print ("not ok 6 graphs: %s\n", error.message);
      }
      loop.quit ();
    });
    loop.run ();
  } catch (Error error) {
    print ("not ok: %s\n", error.message);
    return 1;
  }
  return 0;
}
