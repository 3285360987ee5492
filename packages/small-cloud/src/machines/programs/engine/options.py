"""Options of docker's command line."""

from .world import DockerError


class Options:
    """Options and words. `known` marks each option as a `flag` or as having a `value`; with `stops_at_word`, everything after the first
    word is left for another parser."""

    def __init__(self, known, arguments, stops_at_word):
        self._values = {}
        self.words = []
        left = list(arguments)
        while left:
            word = left.pop(0)
            if word == "--":
                self.words += left
                return
            if not word.startswith("-") or word == "-":
                self.words.append(word)
                if stops_at_word:
                    self.words += left
                    return
                continue
            for name, value in self._read(known, word, left):
                self._values.setdefault(name, []).append(value)

    def _read(self, known, word, left):
        name, equals, value = word.partition("=")
        if name in known:
            if known[name] == "flag":
                return [(name, value != "false")]
            return [(name, value if equals else self._next(name, left))]
        if not word.startswith("--") and all(known.get("-" + letter) == "flag" for letter in word[1:-1]):
            # `-it`, `-aq`, and `-eNAME` the other way around.
            last = "-" + word[-1]
            if known.get(last) is not None:
                end = True if known[last] == "flag" else self._next(last, left)
                return [("-" + letter, True) for letter in word[1:-1]] + [(last, end)]
        if known.get(word[:2]) == "value" and not word.startswith("--"):
            return [(word[:2], word[2:])]
        raise DockerError("unknown flag: %s (or one that machines of this cloud do not have)" % word, 125)

    @staticmethod
    def _next(name, left):
        if not left:
            raise DockerError("flag needs an argument: %s" % name, 125)
        return left.pop(0)

    def all(self, *names):
        """Returns all values of these options, unordered between the names."""
        return [value for name in names for value in self._values.get(name, [])]

    def one(self, *names):
        values = self.all(*names)
        return values[-1] if values else None

    def has(self, *names):
        return self.one(*names) is True
