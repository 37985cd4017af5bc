"""Ids of records that a backend or a file system could take for something else."""

# Ids that would go wrong as paths, queries, patterns or references.
HOSTILE = (
    "../../etc/passwd",
    "/absolute",
    "a/b",
    "a\\b",
    "..",
    "foo",
    "foo.json",
    "CON",
    "a:b",
    "agent:a",
    "pin:a",
    " ",
    "a\nb",
    "'; drop table thread; --",
    "%",
    "*",
    "@",
    "label:x",
    "-rf",
    "\u00e9",
    "e\u0301",
    "\U0001f3f4\u200d\u2620\ufe0f",
)
