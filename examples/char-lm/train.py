"""Trains a small language model that predicts the next character from the ones before it.

Plain Python, nothing to install:

    python3 train.py [--steps 1500]

Checkpoints go to ./checkpoints (or $CRUCIBLE_CHECKPOINT_DIR), the trained weights to ./output (or $CRUCIBLE_OUTPUT_DIR).
A restarted training resumes from its newest checkpoint and ends with exactly the weights of an uninterrupted one: a
checkpoint holds the weights, the optimizer state and the random state, and sums are always computed in the same order.
"""

import argparse
import json
import math
import os
import random
import re
import signal
import sys
import time

CONTEXT = 6
"""Number of characters that the model sees."""
EMBEDDING = 8
HIDDEN = 40
BATCH = 16
LEARNING_RATE = 0.008
CHECKPOINTS_KEPT = 3


class Model:
    """Embeddings of the last characters, one hidden layer, and a probability for each possible next character."""

    def __init__(self, characters, rng):
        size = len(characters)
        self.characters = characters

        def matrix(rows, columns, scale):
            return [[rng.gauss(0.0, scale) for _ in range(columns)] for _ in range(rows)]

        self.tables = {
            "embedding": matrix(size, EMBEDDING, 0.1),
            "hidden": matrix(CONTEXT * EMBEDDING, HIDDEN, (CONTEXT * EMBEDDING) ** -0.5),
            "hidden bias": [[0.0] * HIDDEN],
            "output": matrix(HIDDEN, size, 0.01),
            "output bias": [[0.0] * size],
        }

    def forward(self, context):
        """Returns the inputs, the hidden values and the logits."""
        tables = self.tables
        inputs = [value for code in context for value in tables["embedding"][code]]
        hidden = weigh(inputs, tables["hidden"], tables["hidden bias"][0])
        hidden = [math.tanh(value) for value in hidden]
        return inputs, hidden, weigh(hidden, tables["output"], tables["output bias"][0])

    def learn(self, context, target, gradients):
        """Adds the gradients of one example. Returns its loss."""
        inputs, hidden, outputs = self.forward(context)
        weights, total = softmax(outputs)
        errors = [weight / total for weight in weights]
        loss = -math.log(errors[target])
        errors[target] -= 1.0
        add(gradients["output bias"][0], errors)
        hidden_errors = back(hidden, errors, self.tables["output"], gradients["output"])
        hidden_errors = [error * (1.0 - value * value) for error, value in zip(hidden_errors, hidden)]
        add(gradients["hidden bias"][0], hidden_errors)
        input_errors = back(inputs, hidden_errors, self.tables["hidden"], gradients["hidden"])
        for place, code in enumerate(context):
            add(gradients["embedding"][code], input_errors[place * EMBEDDING : (place + 1) * EMBEDDING])
        return loss

    def sample(self, length, rng):
        """Generates text."""
        codes = [self.characters.index("\n")] * CONTEXT
        for _ in range(length):
            weights, _ = softmax(self.forward(codes[-CONTEXT:])[2])
            codes.append(rng.choices(range(len(weights)), weights)[0])
        return "".join(self.characters[code] for code in codes[CONTEXT:])


def weigh(values, matrix, bias):
    result = bias
    for value, row in zip(values, matrix):
        result = [sum_ + value * weight for sum_, weight in zip(result, row)]
    return result


def softmax(outputs):
    """Returns weights proportional to the probabilities, and their sum. Not `sum()`: Python versions differ in its last digit."""
    top = max(outputs)
    weights = [math.exp(output - top) for output in outputs]
    total = 0.0
    for weight in weights:
        total += weight
    return weights, total


def back(values, errors, matrix, gradients):
    """Adds the gradients of a matrix. Returns the errors of its inputs."""
    result = []
    for index, value in enumerate(values):
        gradients[index] = [sum_ + value * error for sum_, error in zip(gradients[index], errors)]
        total = 0.0
        for weight, error in zip(matrix[index], errors):
            total += weight * error
        result.append(total)
    return result


def add(sums, values):
    for index, value in enumerate(values):
        sums[index] += value


class Adam:
    """The optimizer: steps sized by running means of the gradients and of their squares."""

    def __init__(self, tables):
        self.means = zeros_like(tables)
        self.squares = zeros_like(tables)

    def update(self, tables, gradients, step):
        rate = LEARNING_RATE * math.sqrt(1.0 - 0.99**step) / (1.0 - 0.9**step)
        for name, rows in tables.items():
            for row, mean, square, gradient in zip(
                rows, self.means[name], self.squares[name], gradients[name]
            ):
                for index, slope in enumerate(gradient):
                    slope /= BATCH
                    mean[index] = m = 0.9 * mean[index] + 0.1 * slope
                    square[index] = s = 0.99 * square[index] + 0.01 * slope * slope
                    row[index] -= rate * m / (math.sqrt(s) + 1e-8)


def zeros_like(tables):
    return {name: [[0.0] * len(row) for row in rows] for name, rows in tables.items()}


class Training:
    """The complete training state, which a checkpoint must hold for an exact resume."""

    def __init__(self, text, seed):
        self.rng = random.Random(seed)
        self.model = Model(sorted(set(text)), self.rng)
        self.codes = [self.model.characters.index(character) for character in text]
        self.optimizer = Adam(self.model.tables)
        self.step = 0
        self.loss = None
        """Mean over about the last twenty steps."""

    def do_step(self):
        gradients = zeros_like(self.model.tables)
        loss = 0.0
        for _ in range(BATCH):
            at = self.rng.randrange(len(self.codes) - CONTEXT)
            loss += self.model.learn(self.codes[at : at + CONTEXT], self.codes[at + CONTEXT], gradients)
        self.step += 1
        self.optimizer.update(self.model.tables, gradients, self.step)
        loss /= BATCH
        self.loss = loss if self.loss is None else 0.95 * self.loss + 0.05 * loss

    def state(self):
        return {
            "step": self.step,
            "loss": self.loss,
            "tables": self.model.tables,
            "means": self.optimizer.means,
            "squares": self.optimizer.squares,
            "random": self.rng.getstate(),
        }

    def restore(self, state):
        self.step, self.loss = state["step"], state["loss"]
        self.model.tables = state["tables"]
        self.optimizer.means, self.optimizer.squares = state["means"], state["squares"]
        version, numbers, pending = state["random"]
        self.rng.setstate((version, tuple(numbers), pending))


class Checkpoints:
    """One file for each checkpoint, named by its step; only the newest are kept."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def names(self):
        return sorted(name for name in os.listdir(self.folder) if re.fullmatch(r"step-\d{6}\.json", name))

    def load_newest(self):
        names = self.names()
        if not names:
            return None
        with open(os.path.join(self.folder, names[-1])) as file:
            return json.load(file)

    def save(self, state):
        write_whole(os.path.join(self.folder, "step-%06d.json" % state["step"]), state)
        for name in self.names()[:-CHECKPOINTS_KEPT]:
            os.unlink(os.path.join(self.folder, name))


def write_whole(path, document):
    """Writes a file so that readers find all of it or nothing."""
    with open(path + ".tmp", "w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def read_text(folder):
    texts = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".txt"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append(file.read())
    return "\n".join(texts)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Train a small character-level language model.")
    parser.add_argument("--steps", type=int, default=1500, help="training steps (default 1500)")
    parser.add_argument(
        "--save-every", type=int, default=100, metavar="STEPS", help="steps between checkpoints (default 100)"
    )
    parser.add_argument(
        "--pause", type=float, default=0.0, metavar="SECONDS", help="wait after each step, as a larger model would (default 0)"
    )
    parser.add_argument("--seed", type=int, default=1, help="where the random numbers start (default 1)")
    options = parser.parse_args()
    checkpoints = Checkpoints(os.environ.get("CRUCIBLE_CHECKPOINT_DIR", "checkpoints"))
    output = os.environ.get("CRUCIBLE_OUTPUT_DIR", "output")

    asked_to_stop = []
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.append(True))

    training = Training(read_text(os.path.join(here, "text")), options.seed)
    state = checkpoints.load_newest()
    if state is not None:
        training.restore(state)
        print("continuing from step %d" % training.step, flush=True)
    while training.step < options.steps:
        training.do_step()
        time.sleep(options.pause)
        if training.step % 10 == 0 or training.step == options.steps:
            print("step %d/%d loss %.4f" % (training.step, options.steps, training.loss), flush=True)
        if asked_to_stop or training.step % options.save_every == 0:
            checkpoints.save(training.state())
        if asked_to_stop:
            print("saved at step %d and stopping" % training.step, flush=True)
            return 128 + signal.SIGTERM

    os.makedirs(output, exist_ok=True)
    weights = {"characters": training.model.characters, "tables": training.model.tables}
    write_whole(os.path.join(output, "weights.json"), weights)
    print(training.model.sample(200, random.Random(options.seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
