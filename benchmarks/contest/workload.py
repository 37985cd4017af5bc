"""A conversation to save: seeded, varied English-like text, always the same.

The text is made to be as hard to compress as real prose of its length: common words
as often as English has them, and a long tail of words that are rare.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import orjson

Message = dict[str, str]

USER_SIZE, ASSISTANT_SIZE = 500, 1000
RARE_WORDS = 6000
# How many sentences have a number, and how many words one has before it gets a comma.
WITH_NUMBER, WITHOUT_COMMA = 0.3, 12

# Roughly in the order in which English uses them: the weight of a word is 1 / rank.
COMMON = """
the of and to a in is that it was for on with as be by at this have from or had not
are but which you they one we all were can there has when more if out so said what up
its about into than them only other time new some could these two may then do first
any my now such like our over me even most made after also did many off before must
well back through years where much your way down should because each just those how
too good very make world still see own work men long here get both between life being
under never day same another know while last might great old year come since against
go came right used take three states himself few house use during without again place
around however home small found thought went say part once general high upon school
every system report order agent please check whether account update request customer
error service result value change detail note following option step
"""
STARTS = """
b c d f g h l m n p r s t v w br cl cr dr fl fr gl gr pl pr sc sh sl sp st str th tr
"""
VOWELS = "a e i o u ai ea ee ie io oa ou"
ENDS = "b ck d ft g l ll lt m mp n nd ng nt p r rd rk rm rn rt s ss st t th x"
SUFFIXES = ("", "", "", "s", "ed", "ing", "er", "ly", "tion", "ment", "able", "al")


@dataclass(frozen=True, slots=True)
class Turn:
    """The whole state after a turn, and the messages that are new in it."""

    messages: list[Message]
    added: list[Message]


class Writer:
    """Writes text from a seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = seeded(seed)
        # The words are the same for every seed, as a language is.
        words = COMMON.split() + _rare_words(seeded(0))
        self._words = words
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))

    def text(self, size: int) -> str:
        """Sentences of about this many characters, in paragraphs."""
        parts: list[str] = []
        length = 0
        while length < size:
            parts.append(self._sentence() + ("\n\n" if not len(parts) % 5 else " "))
            length += len(parts[-1])
        return "".join(parts)[:size]

    def turn(self) -> list[Message]:
        """A question and its answer."""
        return [
            {"role": "user", "content": self.text(self._near(USER_SIZE))},
            {"role": "assistant", "content": self.text(self._near(ASSISTANT_SIZE))},
        ]

    def below(self, end: int) -> int:
        """Any number from 0 on."""
        return self._random.randrange(end)

    def _near(self, size: int) -> int:
        return self._random.randint(size * 3 // 4, size * 5 // 4)

    def _sentence(self) -> str:
        count = self._random.randint(5, 22)
        words = self._random.choices(self._words, cum_weights=self._weights, k=count)
        if self._random.random() < WITH_NUMBER:
            words.insert(count // 2, str(self._random.randrange(10_000)))
        if count > WITHOUT_COMMA:
            words[count // 2] += ","
        return " ".join(words).capitalize() + self._random.choice("...?!:")


def growing(turns: int, seed: int = 1) -> Iterator[Turn]:
    """A conversation that only ever grows."""
    writer = Writer(seed)
    messages: list[Message] = []
    for _ in range(turns):
        added = writer.turn()
        messages = messages + added
        yield Turn(messages, added)


def json_size(messages: list[Message]) -> int:
    """The bytes of a state as JSON: what "raw" means in every table."""
    return len(orjson.dumps({"messages": messages}))


def seeded(seed: int) -> random.Random:
    """Chance that is the same every time."""
    return random.Random(seed)


def _rare_words(source: random.Random) -> list[str]:
    starts, vowels, ends = STARTS.split(), VOWELS.split(), ENDS.split()

    def word() -> str:
        syllables = source.choice([1, 1, 2, 2, 2, 3])
        stem = "".join(
            source.choice(starts) + source.choice(vowels) for _ in range(syllables)
        )
        return stem + source.choice(ends) + source.choice(SUFFIXES)

    return list(dict.fromkeys(word() for _ in range(RARE_WORDS)))
