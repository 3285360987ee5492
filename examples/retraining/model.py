"""A model of the next letter from the one before it: a matrix of logits, in plain Python."""

import json
import math

LETTERS = " .abcdefghijklmnopqrstuvwxyz"
_RATE = 2.0


class Model:
    """One row of logits for each letter."""

    def __init__(self, rows=None):
        self.rows = rows or [[0.0] * len(LETTERS) for _ in LETTERS]

    @staticmethod
    def load(path):
        with open(path, encoding="utf-8") as file:
            return Model(json.load(file)["rows"])

    def probabilities(self, letter):
        row = self.rows[letter]
        top = max(row)
        weights = [math.exp(value - top) for value in row]
        total = sum(weights)
        return [weight / total for weight in weights]

    def learn(self, phrases):
        """One step of gradient descent on all phrases."""
        counts = [[0] * len(LETTERS) for _ in LETTERS]
        for first, second in pairs(phrases):
            counts[first][second] += 1
        for letter, row in enumerate(counts):
            seen = sum(row)
            if seen == 0:
                continue
            for other, probability in enumerate(self.probabilities(letter)):
                self.rows[letter][other] += _RATE * (row[other] / seen - probability)

    def loss(self, phrases):
        """The mean of -log(probability) over all letters."""
        known = [self.probabilities(letter) for letter in range(len(LETTERS))]
        losses = [-math.log(known[first][second]) for first, second in pairs(phrases)]
        return sum(losses) / len(losses)


def pairs(phrases):
    for phrase in phrases:
        codes = [LETTERS.index(letter) for letter in " " + phrase]
        yield from zip(codes, codes[1:])
