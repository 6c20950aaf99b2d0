# SPDX-License-Identifier: Apache-2.0
"""Methods in Python without the compiled part: what they claim, and how their results are handed over."""

import types
import unittest
import unittest.mock

import baton
from baton.own import start
from baton.own.methods import Layer, _ByFunctions, _claims_of_passes, _lacking

SIZES = [("P", 4), ("N", 100), ("Q", 10), ("K", 20), ("V", 30), ("O", 40)]


class Tensor:
    """As much of an array as the package uses."""

    def __init__(self, shape, dtype="float32", value=None):
        self.shape, self.dtype, self.value = shape, dtype, value

    def reshape(self, shape):
        return Tensor(shape, self.dtype, self.value)

    def clone(self):
        return Tensor(self.shape, self.dtype, self.value)

    def __setitem__(self, _, other):
        self.value = other.value


class Call(types.SimpleNamespace):
    rank, ranks, stream, send, receive = 1, 2, None, None, None


def layer(*names):
    return Layer(Call(tensors={name: Tensor((3, 2, 4)) for name in names}))


BOTH = ("q", "k", "v", "g", "d_o", "o", "dq", "dk", "dv", "dg")


class Claims(unittest.TestCase):
    def test_a_text_is_of_the_forward_pass_alone(self):
        sent, hops = _claims_of_passes("method one", "(P-1)*(K+V)", "P-1")
        self.assertEqual((sent("forward", SIZES), hops("forward", SIZES)), (150, 3))
        self.assertEqual((sent("backward", SIZES), sent("both", SIZES)), (None, None))

    def test_both_passes_cost_what_each_does(self):
        sent, hops = _claims_of_passes("method one", {"forward": "N", "backward": "2*N+Q"}, {"forward": 3, "backward": "P"})
        self.assertEqual([sent(which, SIZES) for which in ("forward", "backward", "both")], [100, 210, 310])
        self.assertEqual(hops("both", SIZES), 7)

    def test_what_is_no_claim_is_refused(self):
        for sent, hops, said in (("X", 1, "method one: expected a number or a text"), ("N", None, "give both, or none"),
                                 ({"forward": "N", "backward": "N"}, {"forward": 1}, "give both, or none")):
            with self.assertRaisesRegex(baton.Error, said):
                _claims_of_passes("method one", sent, hops)


class Parts(unittest.TestCase):
    def parts(self, names, forward, backward=None):
        return _ByFunctions("one", layer(*names), forward, backward)

    def test_results_are_handed_over_after_the_round(self):
        made = {f"d{name}": Tensor((3, 2, 4), value=name) for name in "qkvg"}
        for gradients in (made, list(made.values()), tuple(made.values())):
            parts = self.parts(BOTH, lambda _: Tensor((1, 3, 2, 4), value="o"), lambda _, found=gradients: found)
            parts.run()
            self.assertEqual([parts.layer.tensors[name].value for name in ("o", "dq")], [None, None])
            parts.finish()
            self.assertEqual([parts.layer.tensors[name].value for name in ("o", "dq", "dk", "dv", "dg")], ["o", *"qkvg"])

    def test_what_a_function_writes_itself_stays(self):
        def forward(given):
            given.o.value = "written"
        parts = self.parts(("q", "k", "v", "o"), forward)
        parts.run()
        parts.finish()
        self.assertEqual(parts.layer.o.value, "written")

    def test_a_backward_pass_alone_has_a_forward_pass_before_that_is_not_timed(self):
        calls = []
        parts = self.parts([name for name in BOTH if name != "o"], lambda _: calls.append("forward"), lambda _: calls.append("backward"))
        parts.prepare()
        parts.run()
        parts.run()
        self.assertEqual(calls, ["forward", "backward", "backward"])

    def test_other_gradients_shapes_and_types_are_refused(self):
        right = Tensor((3, 2, 4))
        for forward, backward, said in (
                (right, [right], "expected the gradients dq, dk, dv, dg, found 1"),
                (right, {"dx": right}, "expected the gradients dq, dk, dv, dg, found dx"),
                (Tensor((3, 4)), None, r"o is float32 \[3, 4\], expected float32 \[3, 2, 4\]"),
                (Tensor((2, 3, 2, 4)), None, r"o is float32 \[2, 3, 2, 4\]"),
                (Tensor((3, 2, 4), "bfloat16"), None, "o is bfloat16")):
            parts = self.parts(BOTH, lambda _, found=forward: found, lambda _, found=backward: found)
            with self.assertRaisesRegex(baton.Error, f"method one: {said}"):
                parts.run()
                parts.finish()


class Kept(unittest.TestCase):
    def test_what_is_not_there_yet_is_waited_for_within_the_round(self):
        class Asynchronous:
            trigger_wait = None

            def wait(self):
                return Tensor((3, 2, 4), value="waited")
        parts = _ByFunctions("one", layer("q", "k", "v", "o"), lambda _: Asynchronous(), None)
        parts.run()
        self.assertEqual(parts.results["o"].value, "waited")

    def test_other_kinds_of_results_are_refused_by_name(self):
        class Sly(Tensor):
            """Computes when it is handed over."""
        for found, said in (([1], "o is list, expected"), (3.0, "o is float, expected"), (Sly((3, 2, 4)), "Sly, expected")):
            with self.assertRaisesRegex(baton.Error, f"method one: .*{said}"):
                _ByFunctions("one", layer("q", "k", "v", "o"), lambda _, result=found: result, None).run()
        for found, said in ((Tensor((3, 2, 4)), "found .*Tensor"), (iter([1]), "found list_iterator")):
            with self.assertRaisesRegex(baton.Error, f"method one: expected the gradients dq, dk, dv, dg, {said}"):
                _ByFunctions("one", layer(*BOTH), lambda _: None, lambda _, result=found: result).run()

    def test_in_a_backward_pass_alone_the_output_has_a_place_too(self):
        given = layer(*[name for name in BOTH if name != "o"])
        _ByFunctions("one", given, lambda one: setattr(one.o, "value", 1), lambda _: None).prepare()
        self.assertEqual((given.o.value, given.d_o.value), (1, None))


class Declarations(unittest.TestCase):
    def test_what_cannot_be_a_method_is_refused(self):
        for words, options, said in ((("",), {}, "needs a name in brackets"), ((print,), {}, "needs a name in brackets"),
                                     (("one",), {"backward": "autgrad"}, "backward is None, \"autograd\" or a function")):
            with self.assertRaisesRegex(baton.Error, said):
                baton.method(*words, **options)
        with self.assertRaisesRegex(baton.Error, "expected a function, found 3"):
            baton.method("one")(3)
        with unittest.mock.patch.dict(start.methods, {"one": ["linear"]}), self.assertRaisesRegex(baton.Error, "declared twice"):
            baton.method("one")


class Needs(unittest.TestCase):
    def test_the_first_module_that_is_missing_is_named(self):
        for modules in ("none_such", ("json", "none_such.part"), ["json", "json.none_such"]):
            self.assertRegex(_lacking(modules), "^this Python has no module .*none_such")
        for modules in ((), "json", ("json", "json.decoder")):
            self.assertEqual(_lacking(modules), "")


class Inputs(unittest.TestCase):
    def test_they_are_named_in_the_order_of_their_gradients(self):
        self.assertEqual(layer("k", "q", "beta", "v", "g", "d_o").inputs(), ["q", "k", "v", "g", "beta"])
        self.assertEqual(layer("q", "k", "v", "g", "a", "b").inputs(), ["q", "k", "v", "g", "a", "b"])


if __name__ == "__main__":
    unittest.main()
