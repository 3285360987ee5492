"""Measures what small training scripts of JAX, Flax and Keras keep in memory: python3 measure_jax.py linen_cnn.py > figures.json

Each script runs until its first gradient is taken. Parameters, gradients and optimizer state are counted exactly. Activations are the temporary
memory that XLA allocates for a compiled step on the CPU.
"""

import os
import platform
import runpy
import sys

import alone

os.environ.setdefault("KERAS_BACKEND", "jax")


class Done(BaseException):
    pass


def size(tree):
    import jax

    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype"))


def temporary(gradient, first, rest, named):
    """Bytes that XLA allocates besides arguments and results, for one loss and its gradients."""
    import jax

    def shapes(tree):
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)

    traced = jax.make_jaxpr(lambda each: gradient(each, *rest, **named))(shapes(first))
    # What the program closes over may itself be traced, so that it becomes an argument.
    whole = jax.jit(lambda constants, *leaves: jax.core.eval_jaxpr(traced.jaxpr, constants, *leaves))
    lowered = whole.lower(shapes(list(traced.consts)), *jax.tree.leaves(shapes(first)))
    return lowered.compile().memory_analysis().temp_size_in_bytes


def measured(script):
    import jax
    import optax

    optimizers = []
    noted = []

    def measuring(original):
        def transform(function, argnums=0, has_aux=False, **options):
            inner = original(function, argnums=argnums, has_aux=has_aux, **options)

            def called(*args, **named):
                if argnums not in (0, (0,)):
                    raise SystemExit("%s takes no gradient by its first argument" % script)
                state = max(optimizers, default=0) or keras_state()
                parameters = size(args[0])
                activations = temporary(inner, args[0], args[1:], named)
                noted.append({"weights": parameters, "gradients": parameters, "optimizer": state, "activations": activations})
                raise Done

            return called

        return transform

    jax.value_and_grad, jax.grad = measuring(jax.value_and_grad), measuring(jax.grad)
    for name in dir(optax):
        make = getattr(optax, name)
        if callable(make) and getattr(make, "__module__", "").startswith("optax.") and not isinstance(make, type):
            setattr(optax, name, noting(make, optimizers))
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    except Done:
        pass
    return noted[0]


def noting(make, sizes):
    import optax

    def made(*args, **named):
        optimizer = make(*args, **named)
        if not isinstance(optimizer, optax.GradientTransformation):
            return optimizer

        def init(parameters):
            state = optimizer.init(parameters)
            sizes.append(size(state))
            return state

        return optimizer._replace(init=init)

    return made


def keras_state():
    """Bytes of the state of Keras's optimizers."""
    if "keras" not in sys.modules:
        return 0
    import gc

    import numpy

    kind = sys.modules["keras"].optimizers.Optimizer
    # An object that only looks like one must not be asked for its class.
    made = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    return sum(int(numpy.prod(each.shape)) * numpy.dtype(each.dtype).itemsize for one in made for each in one.variables)


def versions():
    try:
        import flax
        import jax
        import keras
        import optax
    except ImportError as error:
        sys.exit(f"JAX, Flax, Optax and Keras are needed to measure: {error}. Run pip install jax flax optax keras")
    return {"python with jax": platform.python_version(), **{each.__name__: each.__version__ for each in (jax, flax, optax, keras)}}


if __name__ == "__main__":
    alone.report(measured, versions)
