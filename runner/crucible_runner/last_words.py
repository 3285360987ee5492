"""What a machine reports about an attempt that it cannot begin, for a control plane that sees no beat of it."""

import sys
import urllib.request

from .context import Context

REFUSED_WORDS = "the store refuses this machine: "
"""`core/store-refusal.ts` recognises these words."""

# The starter of the runner adds words, and passes on the last 500 characters.
_CHARS_MAX = 400
_SECONDS = 10.0


def leave_last_words(context: Context, words: str) -> None:
    """Prints the words, because the provider shows the machine's own output, and tries once to put them into the store: through the URL
    that the bootstrap left, otherwise with the machine's own rights."""
    words = shortened(context.book.redactor.clean_text(words))
    body = words.encode("utf-8")
    try:
        url = _url_in(context.paths.last_words_url)
        if url.startswith("http"):
            urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=_SECONDS).close()
        else:
            context.store.put(context.keys.last_words, body)
    except Exception as error:  # whatever the error is: the output has the words
        print("the last words are not in the store: %s" % type(error).__name__, file=sys.stderr)
    print(words, file=sys.stderr, flush=True)


def shortened(words: str) -> str:
    """Leaves out the last clauses of words that are too long."""
    if len(words) <= _CHARS_MAX:
        return words
    return words[:_CHARS_MAX].rsplit("; ", 1)[0]


def _url_in(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
