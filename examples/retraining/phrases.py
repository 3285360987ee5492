"""The data: phrases that people type, a few each day, and other ones every quarter."""

import datetime
import random

_WORDS = {
    1: "snow cold winter ice frost candle blanket",
    2: "rain seed garden spring bloom meadow bird",
    3: "sun beach summer heat river picnic shade",
    4: "leaf wind autumn harvest apple fog lantern",
}
_ALWAYS = "the a old new small quiet bright on under near and with"
_PER_DAY = 4


def between(first, end):
    """The phrases of the days from `first` up to `end`, exclusive; of one day they are always the same."""
    day = datetime.date.fromisoformat(first)
    phrases = []
    while day < datetime.date.fromisoformat(end):
        rng = random.Random(day.toordinal())
        words = (_ALWAYS + " " + _WORDS[(day.month + 2) // 3]).split()
        phrases += [" ".join(rng.choices(words, k=6)) + "." for _ in range(_PER_DAY)]
        day += datetime.timedelta(days=1)
    return phrases


def split(phrases):
    """What to train on, and every tenth phrase to judge by."""
    held_out = phrases[::10]
    return [phrase for index, phrase in enumerate(phrases) if index % 10 != 0], held_out
